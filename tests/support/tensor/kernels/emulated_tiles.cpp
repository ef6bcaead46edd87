#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/support/tensor/kernels/tile_emulator.h"

namespace collimate::tensor::emulated {
namespace {

TileEmulator* emulator_in_use = nullptr;
struct sigaction action_before;

// One instruction with a VEX prefix of three bytes, decoded: C4, bytes P0 and P1, opcode, ModRM, and SIB and
// displacement where ModRM names memory.
class Instruction {
 public:
  Instruction(const uint8_t* at, const mcontext_t& registers) : at_(at), registers_(registers) {
    if (!is_vex_of_map_0f38()) return;
    length_ = 5;
    if (!of_registers()) read_address();
  }

  bool is_vex_of_map_0f38() const { return at_[0] == 0xc4 && (at_[1] & 0x1f) == 2; }
  int prefix() const { return at_[2] & 3; }  // 0: none, 1: 66, 2: f3, 3: f2
  int opcode() const { return at_[3]; }
  bool of_registers() const { return at_[4] >> 6 == 3; }
  int reg() const { return at_[4] >> 3 & 7; }
  int rm() const { return at_[4] & 7; }
  int vvvv() const { return ~(at_[2] >> 3) & 15; }
  int64_t length() const { return length_; }
  char* address() const { return reinterpret_cast<char*>(address_); }
  int64_t stride() const { return stride_; }

 private:
  int64_t value_of(int number) const {
    static constexpr int kPlaces[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                        REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return registers_.gregs[kPlaces[number]];
  }
  template <typename T>
  int64_t take() {
    T value;
    std::memcpy(&value, at_ + length_, sizeof value);
    length_ += static_cast<int64_t>(sizeof value);
    return value;
  }
  void read_address() {
    const int mode = at_[4] >> 6, high_base = at_[1] & 0x20 ? 0 : 8, high_index = at_[1] & 0x40 ? 0 : 8;
    int base = rm() + high_base;
    bool from_instruction = rm() == 5 && mode == 0, without_base = false;
    if (rm() == 4) {
      const int sib = at_[length_++], index = (sib >> 3 & 7) + high_index;
      base = (sib & 7) + high_base;
      without_base = (sib & 7) == 5 && mode == 0;
      if (index != 4) stride_ = value_of(index) << (sib >> 6);
    }
    const bool wide = mode == 2 || from_instruction || without_base;
    const int64_t displacement = wide ? take<int32_t>() : (mode == 1 ? take<int8_t>() : 0);
    const int64_t begin = from_instruction ? reinterpret_cast<int64_t>(at_) + length_ : value_of(base);
    address_ = (without_base ? 0 : begin) + displacement;
  }

  const uint8_t* at_;
  const mcontext_t& registers_;
  int64_t length_ = 0, address_ = 0, stride_ = 0;
};

// Is it one on tiles, and done?
bool execute(const Instruction& i, TileEmulator& tiles) {
  if (!i.is_vex_of_map_0f38()) return false;
  switch (i.opcode() << 4 | i.prefix() << 1 | (i.of_registers() ? 1 : 0)) {
    case 0x490:
      tiles.configure(i.address());
      return true;
    case 0x491:
      tiles.release();
      return true;
    case 0x497:
      tiles.zero(i.reg());
      return true;
    case 0x4b6:
      tiles.load(i.reg(), i.address(), i.stride());
      return true;
    case 0x4b4:
      tiles.store(i.reg(), i.address(), i.stride());
      return true;
    case 0x5c5:
      tiles.multiply_bf16(i.reg(), i.rm(), i.vvvv());
      return true;
    default:
      return false;
  }
}

void execute_refused(int, siginfo_t*, void* context) {
  mcontext_t& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
  const Instruction instruction(reinterpret_cast<const uint8_t*>(registers.gregs[REG_RIP]), registers);
  if (emulator_in_use == nullptr || !execute(instruction, *emulator_in_use)) {
    sigaction(SIGILL, &action_before, nullptr);  // the instruction comes again, and with it the end of the process
    return;
  }
  registers.gregs[REG_RIP] += instruction.length();
}

}  // namespace

EmulatedTiles::EmulatedTiles() {
  emulator_in_use = new TileEmulator;
  struct sigaction action = {};
  action.sa_sigaction = execute_refused;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGILL, &action, &action_before);
}

EmulatedTiles::~EmulatedTiles() {
  sigaction(SIGILL, &action_before, nullptr);
  delete emulator_in_use;
  emulator_in_use = nullptr;
}

const TileEmulator& EmulatedTiles::emulator() const { return *emulator_in_use; }

}  // namespace collimate::tensor::emulated

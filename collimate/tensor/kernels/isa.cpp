#include "collimate/tensor/kernels/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "collimate/base/error.h"

namespace collimate::tensor {
namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned sub_leaf) {
  Registers r;
  __get_cpuid_count(leaf, sub_leaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// Register states that the operating system saves (XCR0).
uint64_t enabled_states() {
  if (((cpuid(1, 0).c >> 27) & 1U) == 0) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

bool bit(unsigned word, int index) { return ((word >> index) & 1U) != 0; }

// Linux gives a process the use of AMX tiles on request (ARCH_REQ_XCOMP_PERM for state 18, XTILEDATA).
bool request_amx() { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

InstructionSet detect() {
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  const uint64_t states = enabled_states();
  const bool avx2 = bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5) && (states & 0x6U) == 0x6U;
  if (!avx2) {
    throw base::RunError(
        base::expectation("cpu", "a processor with AVX2, FMA and F16C", "one without", "run on another machine"));
  }
  const bool avx512 =
      bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31) && (states & 0xe6U) == 0xe6U;
  if (!avx512) return InstructionSet::kAvx2;
  const bool amx = bit(seven.d, 22) && bit(seven.d, 24) && (states & 0x60000U) == 0x60000U && request_amx();
  return amx ? InstructionSet::kAmx : InstructionSet::kAvx512;
}

void require(InstructionSet set, const std::string& where) {
  if (set > best_instruction_set()) {
    throw base::InputError(base::expectation(where, "an instruction set of this machine", std::string(name_of(set)),
                                             std::string(name_of(best_instruction_set()))));
  }
}

InstructionSet from_environment() {
  const char* word = std::getenv("COLLIMATE_ISA");
  if (word == nullptr || *word == '\0') return best_instruction_set();
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512, InstructionSet::kAmx}) {
    if (name_of(set) != word) continue;
    require(set, "COLLIMATE_ISA");
    return set;
  }
  throw base::InputError(base::expectation("COLLIMATE_ISA", "avx2, avx512 or amx", word));
}

std::atomic<int> g_chosen{-1};

}  // namespace

InstructionSet best_instruction_set() {
  static const InstructionSet best = detect();
  return best;
}

InstructionSet instruction_set() {
  int chosen = g_chosen.load(std::memory_order_relaxed);
  if (chosen < 0) {
    chosen = static_cast<int>(from_environment());
    g_chosen.store(chosen, std::memory_order_relaxed);
  }
  return static_cast<InstructionSet>(chosen);
}

void set_instruction_set(InstructionSet set) {
  require(set, "set_instruction_set");
  g_chosen.store(static_cast<int>(set), std::memory_order_relaxed);
}

std::string_view name_of(InstructionSet set) {
  constexpr std::string_view kNames[] = {"avx2", "avx512", "amx"};
  return kNames[static_cast<int>(set)];
}

}  // namespace collimate::tensor

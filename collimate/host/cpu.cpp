#include "collimate/host/cpu.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "collimate/base/error.h"

namespace collimate::host {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers out;
  __get_cpuid_count(leaf, subleaf, &out.a, &out.b, &out.c, &out.d);
  return out;
}

bool bit(uint32_t word, int index) { return (word >> index) & 1; }

// Returns which register files the operating system saves: XCR0, Intel SDM vol. 1 §13.3.
uint64_t saved_state() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;  // OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Asks for the tile registers (state component 18), which Linux gives only to processes that ask.
bool amx_permission() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
}

CpuFeatures detect() {
  constexpr uint64_t kAvxState = 0x6;       // XMM, YMM
  constexpr uint64_t kAvx512State = 0xe6;   // and opmask, ZMM
  constexpr uint64_t kTileState = 0x60000;  // TILECFG, TILEDATA
  const uint64_t saved = saved_state();
  const Registers basic = cpuid(1, 0);
  const Registers leaf7 = cpuid(7, 0);
  const Registers leaf7_1 = leaf7.a >= 1 ? cpuid(7, 1) : Registers{};
  CpuFeatures features;
  features.avx2 = (saved & kAvxState) == kAvxState && bit(basic.c, 12) && bit(basic.c, 29) && bit(leaf7.b, 5);
  features.avx512 = features.avx2 && (saved & kAvx512State) == kAvx512State && bit(leaf7.b, 16) && bit(leaf7.b, 30) &&
                    bit(leaf7.b, 17) && bit(leaf7.b, 31);
  features.avx512_bf16 = features.avx512 && bit(leaf7_1.a, 5);
  features.amx_bf16 =
      features.avx512 && (saved & kTileState) == kTileState && bit(leaf7.d, 22) && bit(leaf7.d, 24) && amx_permission();
  return features;
}

std::string brand_string() {
  if (static_cast<uint32_t>(__get_cpuid_max(0x80000000, nullptr)) < 0x80000004) return "unknown";
  char text[49] = {};
  for (uint32_t part = 0; part < 3; ++part) {
    const Registers words = cpuid(0x80000002 + part, 0);
    std::memcpy(text + 16 * part, &words, sizeof words);
  }
  std::string name(text);
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "unknown" : name;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

int core_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int thread_count() {
  constexpr int kMost = 1024;
  const char* value = std::getenv("OMP_NUM_THREADS");
  const std::string_view text = value == nullptr ? "" : value, first = text.substr(0, text.find(','));
  if (text.empty()) return core_count();
  int count = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), count);
  if (error != std::errc() || end != first.data() + first.size() || count < 1 || count > kMost)
    throw base::InputError(base::expectation("OMP_NUM_THREADS", fmt::format("a number of threads from 1 to {}", kMost),
                                             std::string(text), "unsetting it, which takes all cores"));
  return count;
}

const std::string& cpu_model() {
  static const std::string model = brand_string();
  return model;
}

}  // namespace collimate::host

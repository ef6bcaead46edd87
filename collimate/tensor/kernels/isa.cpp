#include "collimate/tensor/kernels/isa.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "collimate/base/error.h"
#include "collimate/host/cpu.h"

namespace collimate::tensor {
namespace {

InstructionSet detect() {
  const host::CpuFeatures& cpu = host::cpu_features();
  if (!cpu.avx2) {
    throw base::RunError(
        base::expectation("cpu", "a processor with AVX2, FMA and F16C", "one without", "run on another machine"));
  }
  if (!cpu.avx512) return InstructionSet::kAvx2;
  if (!cpu.avx512_bf16) return InstructionSet::kAvx512;
  return cpu.amx_bf16 ? InstructionSet::kAmx : InstructionSet::kAvx512Bf16;
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
  for (const InstructionSet set : kInstructionSets) {
    if (name_of(set) != word) continue;
    require(set, "COLLIMATE_ISA");
    return set;
  }
  throw base::InputError(base::expectation("COLLIMATE_ISA", "avx2, avx512, avx512_bf16 or amx", word));
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
  constexpr std::string_view kNames[] = {"avx2", "avx512", "avx512_bf16", "amx"};
  return kNames[static_cast<int>(set)];
}

}  // namespace collimate::tensor

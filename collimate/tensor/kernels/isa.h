#pragma once

#include <string_view>

namespace collimate::tensor {

// The instruction sets that kernels are compiled for, in ascending order. All give the same bits.
enum class InstructionSet { kAvx2 = 0, kAvx512 = 1, kAvx512Bf16 = 2, kAmx = 3 };
constexpr InstructionSet kInstructionSets[] = {InstructionSet::kAvx2, InstructionSet::kAvx512,
                                               InstructionSet::kAvx512Bf16, InstructionSet::kAmx};

// The best set of this machine that the operating system lets us use. AMX asks the kernel for its tile state once.
InstructionSet best_instruction_set();

// Ops use this: best_instruction_set(), or the environment variable COLLIMATE_ISA = avx2 | avx512 | avx512_bf16 | amx
// (InputError for another word or a set this machine lacks), or the last set_instruction_set.
InstructionSet instruction_set();

// This is for tests and benchmarks. InputError when this machine lacks it. Not to be called while ops run.
void set_instruction_set(InstructionSet set);

std::string_view name_of(InstructionSet set);

}  // namespace collimate::tensor

#pragma once

#include <string_view>

namespace collimate::tensor {

// These are the instruction sets that kernels are compiled for, in ascending order. All give the same bits.
enum class InstructionSet { kAvx2 = 0, kAvx512 = 1, kAvx512Bf16 = 2, kAmx = 3 };
constexpr InstructionSet kInstructionSets[] = {InstructionSet::kAvx2, InstructionSet::kAvx512,
                                               InstructionSet::kAvx512Bf16, InstructionSet::kAmx};

// Returns the best set that this machine has and the operating system lets us use. For AMX it asks the kernel for the
// tile state once.
InstructionSet best_instruction_set();

// Returns the set that operations use: that of the last set_instruction_set, else that of the environment variable
// COLLIMATE_ISA = avx2 | avx512 | avx512_bf16 | amx, else best_instruction_set(). Throws InputError where the variable
// is another word or names a set that this machine lacks.
InstructionSet instruction_set();

// Chooses a set, for tests and benchmarks. Throws InputError when this machine lacks it. Not to be called while
// operations run.
void set_instruction_set(InstructionSet set);

std::string_view name_of(InstructionSet set);

}  // namespace collimate::tensor

#include "bench/peak/peak.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "collimate/tensor/kernels/aligned_buffer.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {
namespace {

TEST(Peak, EachLoopRunsWhereItsInstructionsAre) {
  const InstructionSet before = instruction_set();
  for (const InstructionSet set : kInstructionSets) {
    if (set > best_instruction_set()) continue;
    set_instruction_set(set);
    EXPECT_GT(fma_peak({}), 0) << name_of(set);
    EXPECT_EQ(dot_peak({}) > 0, set >= InstructionSet::kAvx512Bf16) << name_of(set);
    EXPECT_EQ(tile_peak({}) > 0, set == InstructionSet::kAmx) << name_of(set);
  }
  set_instruction_set(before);
}

TEST(Peak, ReadsAnyNumberOfLinesWithAnyNumberOfThreads) {
  host::CorePool three(3);
  const InstructionSet before = instruction_set();
  for (const InstructionSet set : {InstructionSet::kAvx2, before}) {
    set_instruction_set(set);
    for (const int64_t bytes : {64, 100, 576, 1 << 20}) {
      AlignedBuffer buffer;
      const void* data = buffer.reserve(bytes);
      for (const Exec& exec : {Exec{}, Exec{&three}}) {
        const double rate = read_peak(exec, data, bytes);
        EXPECT_TRUE(std::isfinite(rate) && rate > 0) << bytes << " bytes: " << rate;
      }
    }
  }
  set_instruction_set(before);
}

TEST(Peak, NothingToReadIsRefused) {
  AlignedBuffer buffer;
  EXPECT_THROW(read_peak({}, buffer.reserve(63), 63), std::logic_error);
}

}  // namespace
}  // namespace collimate::tensor

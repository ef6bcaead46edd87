#include <gtest/gtest.h>

#include "collimate/tensor/kernels/isa_test_support.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

// The trained weights, and what the policy drew last.
std::string left_by(const std::string& run) { return model_bytes(run) + read_text(run + "/samples/step-000003.jsonl"); }

class InstructionSets : public testing::TestWithParam<const char*> {};

// A whole run of each recipe and type of operands, once with the kernels of each instruction set.
TEST_P(InstructionSets, LeaveTheSameBits) {
  const std::string compute = GetParam();
  const Scratch scratch("isa-" + compute);
  write_small_task(scratch.path());
  const std::vector<std::string> sets = {"models.policy.compute=" + compute};
  for (const char* recipe : {"sft", "reward", "dpo", "grpo", "ppo"}) {
    std::string first;
    for (const tensor::InstructionSet set : tensor::sets_here()) {
      const tensor::WithInstructionSet chosen(set);
      const std::string run = scratch / fmt::format("{}-{}", recipe, tensor::name_of(set));
      train_text(small_config(recipe, scratch.path()), run, sets);
      if (first.empty()) first = left_by(run);
      EXPECT_TRUE(left_by(run) == first) << recipe << " in " << compute << " with " << tensor::name_of(set);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compute, InstructionSets, testing::Values("float32", "bfloat16_amx", "bfloat16_dot"),
                         [](const auto& compute) { return std::string(compute.param); });

}  // namespace
}  // namespace collimate::test

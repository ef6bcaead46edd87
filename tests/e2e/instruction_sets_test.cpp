#include <gtest/gtest.h>

#include "collimate/tensor/kernels/isa.h"
#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

using tensor::InstructionSet;

// Uses `set` until it goes.
class With {
 public:
  explicit With(InstructionSet set) { tensor::set_instruction_set(set); }
  ~With() { tensor::set_instruction_set(before_); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  InstructionSet before_ = tensor::instruction_set();
};

std::vector<InstructionSet> sets_here() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set : tensor::kInstructionSets) {
    if (set <= tensor::best_instruction_set()) {
      sets.push_back(set);
    } else {
      fmt::print("this machine has no {}: its runs are not compared\n", tensor::name_of(set));
    }
  }
  return sets;
}

// The trained weights, and what the policy drew last.
std::string left_by(const std::string& run) { return model_bytes(run) + read_text(run + "/samples/step-000003.jsonl"); }

class InstructionSets : public testing::TestWithParam<const char*> {};

// A whole run of each recipe and type of operands, once with the kernels of each instruction set.
TEST_P(InstructionSets, LeaveTheSameBits) {
  const std::string compute = GetParam();
  const Scratch scratch("isa-" + compute);
  write_small_task(scratch.path());
  const std::vector<std::string> sets = {"models.policy.compute=" + compute};
  for (const char* recipe : {"sft", "reward", "dpo", "grpo"}) {
    std::string first;
    for (const InstructionSet set : sets_here()) {
      const With chosen(set);
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

#include <gtest/gtest.h>

#include "tests/e2e/run_support.h"
#include "tests/support/small_families.h"
#include "tests/support/tensor/kernels/with_isa.h"

namespace collimate::test {
namespace {

// The trained weights, and what a policy drew last.
std::string left_by(const std::string& run, const std::string& recipe) {
  const bool draws = recipe::find_recipe(recipe).rows == rlhf::RowKind::kPrompt;
  const std::string weights = model_bytes(run), drawn = draws ? read_text(run + "/samples/step-000003.jsonl") : "";
  EXPECT_FALSE(weights.empty());
  EXPECT_EQ(drawn.empty(), !draws);
  return weights + drawn;
}

struct Case {
  std::string compute, family;
  std::vector<std::string> recipes;
  std::string name() const { return family + "_" + compute; }
};

// Every recipe of a Llama; training and generation of the other architectures.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string compute : {"float32", "bfloat16_amx", "bfloat16_dot"}) {
    all.push_back({compute, "llama", {"sft", "reward", "dpo", "grpo", "ppo"}});
    for (const auto& [family, config] : small_families()) all.push_back({compute, family, {"sft", "grpo"}});
  }
  return all;
}

class InstructionSets : public testing::TestWithParam<Case> {};

// A whole run of each recipe and type of operands, once with the kernels of each instruction set.
TEST_P(InstructionSets, LeaveTheSameBits) {
  const auto& [compute, family, recipes] = GetParam();
  const Scratch scratch("isa-" + GetParam().name());
  write_small_task(scratch.path());
  write_small_model_of(family, scratch / "start");
  const std::vector<std::string> sets = {"models.policy.compute=" + compute};
  for (const std::string& recipe : recipes) {
    std::string first;
    for (const tensor::InstructionSet set : tensor::sets_here()) {
      const tensor::WithInstructionSet chosen(set);
      const std::string run = scratch / fmt::format("{}-{}", recipe, tensor::name_of(set));
      train_text(small_config(recipe, scratch.path()), run, sets);
      if (first.empty()) first = left_by(run, recipe);
      EXPECT_TRUE(left_by(run, recipe) == first) << recipe << " in " << compute << " with " << tensor::name_of(set);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Compute, InstructionSets, testing::ValuesIn(cases()),
                         [](const auto& of) { return of.param.name(); });

}  // namespace
}  // namespace collimate::test

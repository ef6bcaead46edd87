// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::HasSubstr;

// These tests ask `collimate check` about adapters.
class CheckLora : public CheckCall {};

TEST_F(CheckLora, HowManyParametersAreTrainedIsShown) {
  // 2 layers of hidden size 32 and 64 inside: rank · Σ (in + out) of 4 · (32 + 32) + 3 · (32 + 64).
  EXPECT_THAT(shown("sft", {"models.policy.lora={rank: 4, alpha: 8}"}),
              HasSubstr("lora: policy trains 4352 parameters beside 21472 frozen ones: rank 4, scale 2, q_proj k_proj "
                        "v_proj o_proj gate_proj up_proj down_proj\n"));
  EXPECT_THAT(shown("grpo", {"models.policy.lora={rank: 2, targets: q_proj}"}),
              HasSubstr("rank 2, scale 16, q_proj\n"));
  EXPECT_THAT(shown("sft"), testing::Not(HasSubstr("lora: policy")));
  // With DoRA a length for each row too: 2 · (4 · 32 + 2 · 64 + 32).
  EXPECT_THAT(shown("sft", {"models.policy.lora={rank: 4, alpha: 8, dora: true}"}),
              HasSubstr("lora: policy trains 4928 parameters beside 21472 frozen ones: rank 4, scale 2, with DoRA, "
                        "q_proj k_proj"));
}

TEST_F(CheckLora, WrongOptionsAreNamed) {
  EXPECT_THAT(reasons("sft", {"models.policy.lora.rank=-1"}),
              HasSubstr("models.policy.lora.rank to be at least 0, got -1"));
  EXPECT_THAT(reasons("sft", {"models.policy.lora={rank: 4, alpha: 0}"}),
              HasSubstr("models.policy.lora.alpha to be above 0, got 0"));
  EXPECT_THAT(reasons("sft", {"models.policy.lora={rank: 4, dropout: 1}"}),
              HasSubstr("models.policy.lora.dropout to be at least 0 and less than 1, got 1"));
  EXPECT_THAT(reasons("grpo", {"models.policy.lora={rank: 4, dropout: 0.1}"}),
              HasSubstr("[models.policy.lora.dropout] expected 0 in a recipe that draws its answers, got 0.1; try "
                        "leaving it out"));
  EXPECT_THAT(reasons("sft", {"models.policy.lora={rank: 4, dora: true, dropout: 0.1}"}),
              HasSubstr("[policy lora.dropout] expected 0 of adapters with DoRA, whose lengths are of all inputs, got "
                        "0.1; try leaving it out"));
  EXPECT_THAT(reasons("sft", {"models.policy.lora.alpha=8"}),
              HasSubstr("[lora.rank] expected at least 1 beside other keys of lora, got 0; try "
                        "lora: {rank: 16}, "
                        "or leaving the others out"));
  EXPECT_THAT(reasons("sft", {"models.policy.lora={rank: 4, targets: [qproj]}"}),
              HasSubstr("[lora.targets] expected all-linear or one of q_proj, k_proj, v_proj, o_proj, gate_proj, "
                        "up_proj, down_proj, got 'qproj'; try 'q_proj'"));
}

TEST_F(CheckLora, AModelThatIsNotTrainedHasNone) {
  const std::string reference = "models.reference={path: " + (root_ / "start") + ", from_scratch: true, lora: ";
  for (const char* lora : {"{rank: 4}}", "{alpha: 8}}"})
    EXPECT_THAT(
        reasons("grpo", {"algorithm.beta=0.04", reference + lora}),
        HasSubstr("[models.reference.lora] expected nothing, as only models that are trained have adapters, got "));
}

TEST_F(CheckLora, LayoutsThatNoRecipeHasAreRefused) {
  EXPECT_THAT(
      reasons("grpo", {"models.policy.lora.rank=4",
                       "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {all: {devices: [0, 1], "
                       "models: [policy, policy_trainer]}}, layouts: {policy: {generate: {offload: true}}}}"}),
      HasSubstr("[placement.layouts.policy.generate.offload] expected false of a function that has no optimizer, got "
                "true; try leaving it out"));
}

}  // namespace
}  // namespace collimate::test

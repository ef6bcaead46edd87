// These tests ask what a variant's name and options say.
#include "tests/golden/variant.h"

#include <gtest/gtest.h>

namespace collimate::golden {
namespace {

json variant(const json& over) { return {{"over", over}}; }

// Gives what UnknownKind says, and whether the program fails by it.
std::string refusal(const std::string& trainer, const std::string& name, const json& over) {
  try {
    const json hyper = json::object();
    variant_options(trainer, name, variant(over), hyper);
  } catch (const UnknownKind& unknown) {
    return std::string(unknown.what()) + (unknown.required ? " (required)" : "");
  }
  return "";
}

TEST(VariantOptions, ANameSaysWhatItsOptionsDoNot) {
  const json hyper = {{"beta", 0.1}, {"loss_type", "per variant"}, {"f_divergence_type", "alpha_divergence"}};
  EXPECT_EQ(variant_options("grpo", "dapo|beta=0.04", variant(json::object()), hyper).number("beta", 0), 0.04);
  EXPECT_EQ(variant_options("grpo", "dapo|beta=0.04", variant({{"beta", 0.2}}), hyper).number("beta", 0), 0.2);
  EXPECT_EQ(variant_options("grpo", "dapo_delta1.5", variant(nullptr), hyper).number("delta", 0), 1.5);
  const Options pairs = variant_options("dpo", "sigmoid+sft+beta0.5+js", variant(json::object()), hyper);
  EXPECT_EQ(pairs.find("loss_type"), json::array({"sigmoid", "sft"}));
  EXPECT_EQ(pairs.number("beta", 0), 0.5);
  EXPECT_EQ(pairs.text("f_divergence_type", ""), "js_divergence");
  const Options plain = variant_options("dpo", "exo_pair", variant({{"label_smoothing", 0.1}}), hyper);
  EXPECT_EQ(plain.find("loss_type"), json::array({"exo_pair"}));
  EXPECT_EQ(plain.text("f_divergence_type", ""), "reverse_kl");
}

TEST(VariantOptions, AWordThatNoOptionExplainsIsUnknown) {
  EXPECT_EQ(refusal("grpo", "dapo_clip_higher|beta=0.0", {{"epsilon_high", 0.28}, {"beta", 0.0}}), "");
  EXPECT_EQ(refusal("grpo", "grpo_plainKL", {{"loss_type", "grpo"}, {"use_bias_correction_kl", false}}), "");
  EXPECT_EQ(refusal("grpo", "run 1", {{"loss_type", "grpo"}, {"beta", 0.1}}), "");
  EXPECT_EQ(refusal("grpo", "dapo_clip_higher|beta=0.0", {{"use_bias_correction_kl", true}, {"beta", 0.0}}),
            "a variant whose options do not say what clip_higher is (required)");
  EXPECT_EQ(refusal("dpo", "nca_pair+wpo", json::object()), "a variant whose options do not say what wpo is");
}

TEST(VariantOptions, AnOptionThatNothingKnowsFailsForAKindThatMustBeThere) {
  EXPECT_EQ(refusal("dpo", "ipo", {{"unheard_of", 1}}), "option unheard_of (required)");
  EXPECT_EQ(refusal("dpo", "nca_pair", {{"unheard_of", 1}}), "option unheard_of");
  EXPECT_EQ(refusal("grpo", "grpo|gate=2", {{"loss_type", "grpo"}}), "option gate (required)");
  EXPECT_EQ(refusal("grpo", "sapo|gate=2", {{"loss_type", "sapo"}}), "option gate");
  EXPECT_EQ(refusal("dpo", "hinge", {{"model", "another"}}), "option model (required)");
}

TEST(TrainerKind, IsOfTheWholeNameOfTheClass) {
  const auto kind = [](const char* trainer) { return trainer_kind({{"trainer", trainer}}); };
  EXPECT_EQ(kind("trl.GRPOTrainer._compute_loss + backward"), "grpo");
  EXPECT_EQ(kind("trl.experimental.ppo.PPOTrainer.train (1.9.0)"), "ppo");
  EXPECT_EQ(kind("own rollouts"), "grpo");
  EXPECT_EQ(kind("own pairs"), "dpo");
  for (const char* other : {"trl.RLOOTrainer", "trl.experimental.gmpo.GMPOTrainer", "OnlineDPOTrainer",
                            "trl.experimental.IterativeSFTTrainer", "plain torch", "own letters", "rollouts"})
    EXPECT_EQ(kind(other), "") << other;
}

}  // namespace
}  // namespace collimate::golden

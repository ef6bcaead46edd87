#include <gmock/gmock.h>

#include "collimate/rlhf/loss/policy_terms.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/loss/two_rows.h"

namespace collimate::rlhf {
namespace {

// Rows of one prompt token and the given log-probs as trainable tokens; `old` and `reference` are the log-probs moved.
struct Rows {
  Batch batch;
  at::Tensor log_probs;
};

std::vector<std::vector<float>> shifted(const std::vector<std::vector<float>>& rows, float by) {
  std::vector<std::vector<float>> out = rows;
  for (auto& row : out) {
    for (float& x : row) x += by;
    row.insert(row.begin(), 0.F);
  }
  return out;
}

Rows rows_of(const std::vector<std::vector<float>>& log_probs, float advantage, float old_shift,
             float reference_shift) {
  Rows out;
  std::vector<float> flat;
  std::vector<std::vector<uint8_t>> trainable;
  std::vector<std::vector<float>> advantages;
  for (const auto& row : log_probs) {
    flat.insert(flat.end(), row.begin(), row.end());
    trainable.emplace_back(row.size() + 1, 1);
    trainable.back()[0] = 0;
    advantages.emplace_back(row.size() + 1, advantage);
  }
  out.batch.set_ragged(batch::kTrainable, trainable);
  out.batch.set_ragged(batch::kAdvantages, advantages);
  out.batch.set_ragged(batch::kOldLogProbs, shifted(log_probs, old_shift));
  out.batch.set_ragged(batch::kReferenceLogProbs, shifted(log_probs, reference_shift));
  out.log_probs = at::tensor(flat);
  return out;
}

Loss policy(const std::string& type, const nlohmann::json& options = {}, int64_t completion_tokens = 0) {
  return loss_with("rollouts", type, options, completion_tokens);
}

double evaluate(const Loss& loss, const Rows& rows, GlobalCounts counts) {
  LossContext context(rows.batch, {.log_probs = rows.log_probs}, counts);
  return loss.value(context).item<double>();
}

TEST(PolicyLoss, OnPolicyIsMinusTheAdvantage) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 0.5F, 0, 0);
  for (const char* type : {"grpo", "bnpo", "dapo", "ppo"})
    EXPECT_NEAR(evaluate(policy(type), rows, {3, 2}), -0.5, 1e-6) << type;
  EXPECT_NEAR(evaluate(policy("dr_grpo", {}, 4), rows, {3, 2}), -0.5 * 3 / 8, 1e-6);
}

// The token at the quantile itself is trained: of three the upper half is two.
TEST(PolicyLoss, TheTokenAtTheEntropyQuantileIsTrained) {
  const Rows rows = rows_of({{-1, -2, -3}}, 1.F, 0, 0);
  const Loss loss = policy("dapo", {{"top_entropy_quantile", 0.5}});
  const Quantities quantities{.log_probs = rows.log_probs, .entropy = at::tensor({0.1F, 0.3F, 0.2F})};
  EXPECT_NEAR(value_alone(loss, rows.batch, quantities, {3, 1}), -2.0 / 3, 1e-6);
}

TEST(PolicyLoss, ClipsAndAddsTheKl) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 1.F, -1.F, 0.5F);  // ratio e
  EXPECT_NEAR(evaluate(policy("dapo"), rows, {3, 2}), -1.2, 1e-6);
  EXPECT_NEAR(evaluate(policy("dapo", {{"epsilon_high", 0.28}}), rows, {3, 2}), -1.28, 1e-6);
  const double k3 = std::exp(0.5) - 0.5 - 1;
  EXPECT_NEAR(evaluate(policy("dapo", {{"beta", 0.1}}), rows, {3, 2}), -1.2 + 0.1 * k3, 1e-6);
}

TEST(PolicyLoss, SequenceRatioIsTheGeometricMean) {
  Rows rows = rows_of({{-1, -2}, {-3}}, 1.F, 0.F, 0.F);
  std::vector<std::vector<float>> old = {{0, -1.2F, -1.8F}, {0, -3}};  // mean log-ratio of row 0 is 0
  rows.batch.set_ragged(batch::kOldLogProbs, old);
  EXPECT_NEAR(evaluate(policy("grpo", {{"importance_sampling_level", "sequence"}}), rows, {3, 2}), -1.0, 1e-6);
  EXPECT_GT(std::abs(evaluate(policy("grpo"), rows, {3, 2}) + 1.0), 1e-3);
}

// The loss is the same whatever the micro-batches: shares with global counts add up.
TEST(PolicyLoss, SharesOfMicroBatchesAddUp) {
  const std::vector<std::vector<float>> all = {{-1, -2}, {-3}, {-0.5F, -0.25F, -4}, {-1}};
  const GlobalCounts counts{7, 4};
  for (const char* type : {"grpo", "bnpo", "dapo", "cispo", "sapo"}) {
    const Loss loss = policy(type, {{"beta", 0.04}});
    const double whole = evaluate(loss, rows_of(all, 0.7F, -0.1F, 0.2F), counts);
    const double parts = evaluate(loss, rows_of({all[0]}, 0.7F, -0.1F, 0.2F), counts) +
                         evaluate(loss, rows_of({all[1], all[2], all[3]}, 0.7F, -0.1F, 0.2F), counts);
    EXPECT_NEAR(whole, parts, 1e-6) << type;
  }
}

TEST(PolicyLoss, PpoIsAMeanOverTokensAndGrpoOverSamples) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 0.5F, 0, 0);
  Rows uneven = rows;
  uneven.batch.set_ragged(batch::kAdvantages, std::vector<std::vector<float>>{{0, 1, 1}, {0, 4}});
  EXPECT_NEAR(evaluate(policy("ppo"), uneven, {3, 2}), -(1 + 1 + 4) / 3.0, 1e-6);
  EXPECT_NEAR(evaluate(policy("grpo"), uneven, {3, 2}), -(1 + 4) / 2.0, 1e-6);
}

// Row 0 fell by 1 a token since it was drawn and row 1 by nothing.
TEST(PolicyLoss, SamplesThatWentOffPolicyAreLeftOutWhereTheyAreWorse) {
  Rows rows = rows_of({{-1, -2}, {-3}}, -1.F, 0.F, 0.F);
  rows.batch.set_ragged(batch::kLogProbs, std::vector<std::vector<float>>{{0, 0, -1}, {0, -3}});
  const nlohmann::json mask = {{"off_policy_mask_threshold", 0.5}};
  EXPECT_NEAR(evaluate(policy("dapo"), rows, {3, 2}), 1.0, 1e-6);
  EXPECT_NEAR(evaluate(policy("dapo", mask), rows, {3, 2}), 1.0 / 3, 1e-6);
  rows.batch.set_ragged(batch::kAdvantages, std::vector<std::vector<float>>{{0, 1, 1}, {0, 1}});
  EXPECT_NEAR(evaluate(policy("dapo", mask), rows, {3, 2}), -1.0, 1e-6);
}

// Mean of what is counted as clipped, of rows whose ratio is e^-old_shift.
double clipped_part(const Loss& loss, float advantage, float old_shift = -1.F) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, advantage, old_shift, 0.F);
  LossContext context(rows.batch, {.log_probs = rows.log_probs}, {3, 2});
  loss.value(context);
  const auto& [sum, count] = context.metrics().at("actor/pg_clipfrac");
  return sum / count;
}
double clipped_part(const std::string& type, const nlohmann::json& options, float advantage) {
  return clipped_part(policy(type, options), advantage);
}

TEST(PolicyLoss, WhatIsCountedAsClippedIsCountedBelowDeltaAndAboveTheCapOfCispo) {
  EXPECT_EQ(clipped_part("grpo", {}, 1.F), 1.0);
  EXPECT_EQ(clipped_part("grpo", {{"delta", 1.5}}, 1.F), 1.0);
  EXPECT_EQ(clipped_part("grpo", {{"delta", 1.1}}, 1.F), 0.0);
  EXPECT_EQ(clipped_part("grpo", {{"delta", 0.5}}, -1.F), 1.0);
  EXPECT_EQ(clipped_part("cispo", {{"epsilon_high", 2.0}}, 1.F), 1.0);
  EXPECT_EQ(clipped_part("cispo", {{"epsilon_high", 2.8}}, 1.F), 0.0);
}

// A file with a policy loss of its own says all of this.
TEST(PolicyLoss, ASurrogateOfItsOwnHasItsOwnClipRangeAndOptions) {
  const LossEntry entry = policy_entry(
      {{"wide",
        "A wider clip.",
        {[](const PolicyTerms& t, const AlgorithmOptions&) { return -t.ratio.clamp(0.5, 3.0) * t.advantages; },
         [](const AlgorithmOptions& o) {
           return ClipRange{0.5, 2.0 + o.delta->value_or(1.0)};
         },
         {"delta"}},
        update_token_mean}});
  EXPECT_EQ(entry.rows, "rollouts");
  EXPECT_EQ(entry.types, std::vector<std::string>{"wide"});
  EXPECT_THAT(entry.options("wide"), testing::Contains("delta"));
  EXPECT_THAT(entry.options("wide"), testing::Not(testing::Contains("epsilon")));
  const auto wide = [&](double delta) {
    LossSetting setting;
    setting.options.delta = delta;
    return entry.make("wide", setting);
  };
  EXPECT_EQ(clipped_part(wide(1.0), 1.F), 0.0);        // a ratio of 2.7 below 3
  EXPECT_EQ(clipped_part(wide(0.5), 1.F), 1.0);        // above 2.5
  EXPECT_EQ(clipped_part(wide(1.0), -1.F, 1.F), 1.0);  // 0.37 below 0.5
  EXPECT_EQ(clipped_part(wide(1.0), -1.F, 0.5F), 0.0);
  EXPECT_NEAR(evaluate(wide(1.0), rows_of({{-1, -2}}, 1.F, -2.F, 0.F), {2, 1}), -3.0, 1e-6);
}

TEST(PolicyLoss, ALossThatDividesByTheLimitNeedsOne) {
  EXPECT_EQ(base::message_of([] { policy("dr_grpo"); }),
            "[algorithm.loss_type] expected a completion limit for dr_grpo, got none; try rollout.completion_tokens");
}

TEST(PolicyLoss, ReadsTheReferenceWhereItHasAKl) {
  EXPECT_FALSE(policy("ppo").reads(batch::kReferenceLogProbs));
  EXPECT_TRUE(policy("ppo", {{"beta", 0.1}}).reads(batch::kReferenceLogProbs));
}

class TwoSamples : public TwoRows {};

TEST_F(TwoSamples, LuspoSumsAndVespoWeighsSequences) {
  rows_.set_ragged(batch::kAdvantages, std::vector<std::vector<float>>{{0, 1, 1}, {0, -1, -1}});
  rows_.set_ragged(batch::kOldLogProbs, std::vector<std::vector<float>>{{0, -1, -2}, {0, -2, -3}});
  EXPECT_NEAR(value(policy("luspo")), 0.0, 1e-6);
  EXPECT_NEAR(value(policy("vespo")), (3.0 - 5.0) / 4, 1e-6);  // φ(1) = 1
  rows_.set_ragged(batch::kOldLogProbs, std::vector<std::vector<float>>{{0, -1, -2.5F}, {0, -2, -3}});
  const double weight = std::exp(2 * 0.5 + 3 - 3 * std::exp(0.5));
  EXPECT_NEAR(value(policy("vespo")), (3.0 * weight - 5.0) / 4, 1e-6);
}

}  // namespace
}  // namespace collimate::rlhf

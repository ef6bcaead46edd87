#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/policy.h"
#include "collimate/rlhf/loss/preference.h"
#include "collimate/rlhf/loss/sft.h"
#include "collimate/rlhf/loss/value.h"

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

double evaluate(const Loss& loss, const Rows& rows, GlobalCounts counts) {
  LossContext context(rows.batch, {.log_probs = rows.log_probs}, counts);
  return loss.value(context).item<double>();
}

TEST(SftLoss, IsTheMeanOverTokens) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 0, 0, 0);
  EXPECT_DOUBLE_EQ(evaluate(sft_loss(), rows, {3, 2}), 2.0);
}

TEST(DpoLoss, IsLogTwoWhenPolicyIsTheReference) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 0, 0, 0);
  EXPECT_NEAR(evaluate(dpo_loss({}), rows, {3, 2}), std::log(2.0), 1e-7);
  EXPECT_NEAR(evaluate(dpo_loss({.loss_type = "hinge"}), rows, {3, 2}), 1.0, 1e-7);
  EXPECT_NEAR(evaluate(dpo_loss({.loss_type = "ipo"}), rows, {3, 2}), 25.0, 1e-4);
  EXPECT_THROW(dpo_loss({.loss_type = "sigmiod"}), base::InputError);
}

TEST(PolicyLoss, OnPolicyIsMinusTheAdvantage) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 0.5F, 0, 0);
  for (const char* type : {"grpo", "bnpo", "dapo", "ppo"})
    EXPECT_NEAR(evaluate(policy_loss({.loss_type = type}), rows, {3, 2}), -0.5, 1e-6) << type;
  EXPECT_NEAR(evaluate(policy_loss({.loss_type = "dr_grpo", .max_completion_tokens = 4}), rows, {3, 2}), -0.5 * 3 / 8,
              1e-6);
}

TEST(PolicyLoss, ClipsAndAddsTheKl) {
  const Rows rows = rows_of({{-1, -2}, {-3}}, 1.F, -1.F, 0.5F);  // ratio e
  EXPECT_NEAR(evaluate(policy_loss({.loss_type = "dapo"}), rows, {3, 2}), -1.2, 1e-6);
  EXPECT_NEAR(evaluate(policy_loss({.loss_type = "dapo", .epsilon_high = 0.28}), rows, {3, 2}), -1.28, 1e-6);
  const double k3 = std::exp(0.5) - 0.5 - 1;
  EXPECT_NEAR(evaluate(policy_loss({.loss_type = "dapo", .beta = 0.1}), rows, {3, 2}), -1.2 + 0.1 * k3, 1e-6);
}

TEST(PolicyLoss, SequenceRatioIsTheGeometricMean) {
  Rows rows = rows_of({{-1, -2}, {-3}}, 1.F, 0.F, 0.F);
  std::vector<std::vector<float>> old = {{0, -1.2F, -1.8F}, {0, -3}};  // mean log-ratio of row 0 is 0
  rows.batch.set_ragged(batch::kOldLogProbs, old);
  EXPECT_NEAR(evaluate(policy_loss({.importance_sampling_level = "sequence"}), rows, {3, 2}), -1.0, 1e-6);
  EXPECT_GT(std::abs(evaluate(policy_loss({.importance_sampling_level = "token"}), rows, {3, 2}) + 1.0), 1e-3);
}

// The same loss whatever the micro-batches: shares with global counts add up.
TEST(PolicyLoss, SharesOfMicroBatchesAddUp) {
  const std::vector<std::vector<float>> all = {{-1, -2}, {-3}, {-0.5F, -0.25F, -4}, {-1}};
  const GlobalCounts counts{7, 4};
  for (const char* type : {"grpo", "bnpo", "dapo", "cispo", "sapo"}) {
    const Loss loss = policy_loss({.loss_type = type, .beta = 0.04});
    const double whole = evaluate(loss, rows_of(all, 0.7F, -0.1F, 0.2F), counts);
    const double parts = evaluate(loss, rows_of({all[0]}, 0.7F, -0.1F, 0.2F), counts) +
                         evaluate(loss, rows_of({all[1], all[2], all[3]}, 0.7F, -0.1F, 0.2F), counts);
    EXPECT_NEAR(whole, parts, 1e-6) << type;
  }
}

TEST(ValueLoss, TakesTheWorseOfClippedAndFree) {
  Batch rows;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}});
  rows.set_ragged(batch::kValues, std::vector<std::vector<float>>{{0, 0.F, 1.F}});
  rows.set_ragged(batch::kReturns, std::vector<std::vector<float>>{{0, 1.F, 1.F}});
  LossContext context(rows, {.values = at::tensor({0.5F, 1.F})}, {2, 1});
  EXPECT_NEAR(value_loss({}).value(context).item<double>(), 0.5 * (0.8 * 0.8) / 2, 1e-6);
}

}  // namespace
}  // namespace collimate::rlhf

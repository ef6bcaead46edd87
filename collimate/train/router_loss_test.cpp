#include "collimate/train/router_loss.h"

#include <ATen/TensorOperators.h>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/train/learner.h"
#include "tests/support/base/error_of.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::train {
namespace {

using model::testing::tiny_shape;
using model::testing::tiny_weights;

constexpr RouterLossOptions kLosses = {.balance = 0.3, .z = 0.1};

// Samples of three prompts, of which a micro-batch computes each once; one row has nothing to train.
Batch samples() {
  batch::TokenRows tokens;
  std::vector<int64_t> prompts;
  for (int64_t r = 0; r < 9; ++r) {
    const int64_t prompt = r / 3;
    prompts.push_back(prompt);
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < 20 + r % 4; ++t)
      ids.push_back(static_cast<int32_t>((t < 17 ? 7 * t * t + prompt : 5 * t + 11 * r) % 37));
    const size_t first_trained = r == 4 ? ids.size() : 17;
    tokens.add(r, std::move(ids), first_trained);
  }
  Batch rows = tokens.batch();
  rows.set(batch::kPromptUid, prompts);
  return rows;
}

Objective nll() {
  return {{},
          [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
             const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; }};
}

// An update's loss and gradients.
struct Outcome {
  UpdateReport report;
  std::vector<float> gradients;
};

Outcome outcome_of(const Batch& rows, const batch::GlobalCounts& counts, const LearnerOptions& options,
                   comm::Group* group = nullptr) {
  auto weights = tiny_weights(tiny_shape("mixtral"));
  model::Model model(weights, {});
  Learner learner(model, options, {}, {group});
  const UpdateReport report = learner.accumulate(rows, nll(), counts);
  return {report, model::testing::all_gradients(*weights)};
}

void expect_same(const Outcome& got, const Outcome& want, const std::string& how) {
  EXPECT_NEAR(got.report.loss, want.report.loss, 2e-6) << how;
  EXPECT_EQ(got.report.routers.tokens, want.report.routers.tokens) << how;
  EXPECT_NEAR(got.report.routers.balance, want.report.routers.balance, 2e-6) << how;
  EXPECT_NEAR(got.report.routers.busiest_share, want.report.routers.busiest_share, 1e-6) << how;
  EXPECT_NEAR(got.report.routers.spread, want.report.routers.spread, 1e-6) << how;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < want.gradients.size(); ++i) {
    difference += std::pow(got.gradients[i] - want.gradients[i], 2);
    norm += std::pow(want.gradients[i], 2);
  }
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << how;
}

TEST(RouterLoss, IsOneOfItsUpdate) {
  const Batch rows = samples();
  const batch::GlobalCounts counts = count_rows(rows);
  const Outcome whole = outcome_of(rows, counts, {.micro_batch_tokens = 100000, .routers = kLosses});
  EXPECT_EQ(whole.report.routers.tokens, 9 * 20 + (0 + 1 + 2 + 3) * 2 - 20);  // all of all rows but the fifth
  for (const int64_t budget : {1, 45, 90})
    expect_same(outcome_of(rows, counts, {.micro_batch_tokens = budget, .routers = kLosses}), whole,
                std::to_string(budget) + " tokens");
  expect_same(
      outcome_of(rows, counts, {.micro_batch_tokens = 45, .recompute = model::Recompute::kFull, .routers = kLosses}),
      whole, "recomputed");
  comm::with_ranks(2, "router loss", [&](comm::Group& group) {
    const Batch own = group.rank() == 0 ? rows.slice(0, 3) : rows.slice(3, 9);
    expect_same(outcome_of(own, counts, {.micro_batch_tokens = 45, .routers = kLosses}, &group), whole, "two ranks");
  });
}

// Without them the load is told all the same, and the gradient is that of the objective.
TEST(RouterLoss, IsNothingUnlessAskedFor) {
  const Batch rows = samples();
  const batch::GlobalCounts counts = count_rows(rows);
  const Outcome plain = outcome_of(rows, counts, {.micro_batch_tokens = 45});
  const Outcome both = outcome_of(rows, counts, {.micro_batch_tokens = 45, .routers = kLosses});
  EXPECT_EQ(plain.report.routers.tokens, both.report.routers.tokens);
  EXPECT_NEAR(plain.report.routers.balance, both.report.routers.balance, 1e-6);
  EXPECT_NEAR(both.report.loss - plain.report.loss, 0.3 * both.report.routers.balance + 0.1 * both.report.routers.z,
              1e-5);
  EXPECT_NE(plain.gradients, both.gradients);
  EXPECT_GE(plain.report.routers.busiest_share, 0.25) << "of four experts";
}

// A step against its gradient makes the load more even.
TEST(RouterLoss, SpreadsTokens) {
  auto weights = tiny_weights(tiny_shape("mixtral"));
  model::Model model(weights, {});
  Learner learner(model, {.schedule = {.peak = 3e-3}, .routers = {.balance = 10}}, {});
  const double first = learner.update(samples(), nll()).routers.balance;
  double last = first;
  for (int step = 0; step < 10; ++step) last = learner.update(samples(), nll()).routers.balance;
  EXPECT_LT(last, first - 0.01);
}

TEST(RouterLoss, OfADenseModelOrSigmoidsIsRefused) {
  EXPECT_EQ(router_losses(tiny_shape("llama"), std::nullopt, 0).balance, 0);
  EXPECT_EQ(
      base::message_of([] { router_losses(tiny_shape("llama"), 0.1, 0); }),
      "[train.router_aux_loss_coef] expected a mixture whose experts are scored by a softmax, got a model without "
      "experts; try leaving it out");
  EXPECT_EQ(base::message_of([] { router_losses(tiny_shape("dots1"), std::nullopt, 0.1); }),
            "[train.router_z_loss_coef] expected a mixture whose experts are scored by a softmax, got one whose scores "
            "are sigmoids; try leaving it out");
  shape::ModelShape mixtral = tiny_shape("mixtral");
  mixtral.blocks[0].mlp.experts.balance = 0.02;
  EXPECT_EQ(router_losses(mixtral, std::nullopt, 0).balance, 0.02);
  EXPECT_EQ(router_losses(mixtral, 0.0, 0.1).balance, 0);
}

}  // namespace
}  // namespace collimate::train

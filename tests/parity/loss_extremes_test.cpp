// Every loss of the list on rows that break formulas: nothing to train in a row, log-ratios beyond any that training
// meets, a reference that gives a token no probability.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/listed.h"
#include "collimate/train/micro_batch.h"
#include "tests/parity/small_learner.h"

namespace collimate::test {
namespace {

constexpr int64_t kExtremeRows = 4;

rlhf::Loss loss_of(const std::string& rows, const std::string& type, nlohmann::json options = {}) {
  if (options.is_null()) options = nlohmann::json::object();
  if (type == "exo_pair") options["label_smoothing"] = 0.1;
  rlhf::LossSetting setting{.completion_tokens = 16};
  base::apply(options, "algorithm", setting.options);
  return rlhf::make_loss(rows, type, setting);
}

// A loss with the gradients of what it was made of.
struct ExtremeOutcome {
  double loss = 0;
  std::vector<double> log_probs, values, scores, token_scores, listed, rest;

  bool is_finite() const {
    bool finite = std::isfinite(loss);
    for (const auto* all : {&log_probs, &values, &scores, &token_scores, &listed, &rest})
      for (const double x : *all) finite = finite && std::isfinite(x);
    return finite;
  }
};

std::vector<double> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// The log-ratios of every second row are moved by `shift` and those of the others by as much the other way: up by lower
// log-probs of sample and reference, as none is above 0.
Batch moved(const Batch& rows, float shift) {
  Batch out = rows;
  for (const Key<float>& key : {batch::kLogProbs, batch::kReferenceLogProbs}) {
    std::vector<std::vector<float>> columns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const auto own = rows.row(key, r);
      columns.emplace_back(own.begin(), own.end());
      for (float& x : columns.back()) x -= std::max(0.F, r % 2 == 0 ? shift : -shift);
    }
    out.set_ragged(key, columns);
  }
  return out;
}

at::Tensor token_scores_of(const Batch& rows, float shift) {
  std::vector<float> scores;
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (const uint8_t trainable : rows.row(batch::kTrainable, r))
      if (trainable != 0) scores.push_back(r % 2 == 0 ? shift : -shift);
  return at::tensor(scores);
}

ExtremeOutcome outcome_of(const rlhf::Loss& loss, const Batch& given, float shift, const batch::GlobalCounts& counts) {
  const Batch rows = moved(given, shift);
  std::vector<float> log_probs;
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (size_t t = 0; t < rows.row(batch::kTrainable, r).size(); ++t)
      if (rows.row(batch::kTrainable, r)[t] != 0)
        log_probs.push_back(given.row(batch::kLogProbs, r)[t] + std::min(0.F, r % 2 == 0 ? shift : -shift));
  const auto tokens = static_cast<int64_t>(log_probs.size());
  rlhf::Quantities leaves{tensor::make_leaf(at::tensor(log_probs)), tensor::make_leaf(at::full({tokens}, 0.7F)),
                          tensor::make_leaf(at::full({tokens}, 0.1F)),
                          tensor::make_leaf(at::full({rows.rows()}, shift))};
  leaves.listed = tensor::make_leaf((leaves.log_probs.detach() - 1).unsqueeze(1).expand({tokens, 3}).contiguous());
  // The tokens of every second row score as far the other way.
  leaves.token_scores = tensor::make_leaf(token_scores_of(rows, shift));
  leaves.rest = tensor::make_leaf(at::full({tokens}, shift < 0 ? tensor::kLeastRest : -0.1F));
  batch::Surveys surveys;
  rlhf::LossContext asked(rows, leaves, counts);
  if (loss.surveys > 0)
    for (const at::Tensor& numbers : loss.survey(asked)) surveys.push_back({numbers, 0});
  rlhf::LossContext context(rows, leaves, counts, surveys);
  const at::Tensor value = loss.value(context);
  ExtremeOutcome out{.loss = value.item<double>()};
  const auto gradients = tensor::gradients_of(
      value, {leaves.log_probs, leaves.values, leaves.row_scores, leaves.listed, leaves.rest, leaves.token_scores});
  out.log_probs = numbers_of(gradients[0]);
  out.values = numbers_of(gradients[1]);
  out.scores = numbers_of(gradients[2]);
  out.listed = numbers_of(gradients[3]);
  out.rest = numbers_of(gradients[4]);
  out.token_scores = numbers_of(gradients[5]);
  return out;
}

// The rows of which the last two train nothing: their answers are empty, or masked.
Batch with_masked_rows(const Batch& rows) {
  Batch out = rows;
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto own = rows.row(batch::kTrainable, r);
    trainable.emplace_back(own.begin(), own.end());
    if (r >= rows.rows() - 2) std::ranges::fill(trainable.back(), uint8_t{0});
  }
  out.set_ragged(batch::kTrainable, trainable);
  add_teacher(out);
  return out;
}

Batch with_reference(const Batch& rows, float value) {
  Batch out = rows;
  std::vector<std::vector<float>> reference;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto own = rows.row(batch::kReferenceLogProbs, r);
    reference.emplace_back(own.begin(), own.end());
    if (r == 0) reference.back().back() = value;
  }
  out.set_ragged(batch::kReferenceLogProbs, reference);
  return out;
}

template <class Check>
void for_every_loss(const Check& check) {
  for (const rlhf::LossEntry& entry : rlhf::losses())
    for (const std::string& type : entry.types) check(entry.rows, type);
}

TEST(LossExtremes, RowsWithoutATrainableTokenAddNothingButTheirCount) {
  const Batch rows = training_rows(kExtremeRows), masked = with_masked_rows(rows);
  const batch::GlobalCounts counts = train::count_rows(masked);
  for_every_loss([&](const std::string& kind, const std::string& type) {
    if (type == "orpo") return;  // an empty answer's odds are infinite: pairs have none
    const rlhf::Loss loss = loss_of(kind, type);
    const ExtremeOutcome out = outcome_of(loss, masked, 0.1F, counts);
    EXPECT_TRUE(out.is_finite()) << type << " " << out.loss;
    if (kind != "rollouts" && !kind.ends_with("completions") && kind != "values") return;
    const ExtremeOutcome alone = outcome_of(loss, rows.slice(0, kExtremeRows - 2), 0.1F, counts);
    EXPECT_NEAR(out.loss, alone.loss, 1e-6) << type;
    EXPECT_EQ(out.log_probs, alone.log_probs) << type;
  });
}

TEST(LossExtremes, AnUpdateOfMaskedRowsAloneHasNoGradient) {
  const Batch rows = with_masked_rows(training_rows(2));
  for_every_loss([&](const std::string& kind, const std::string& type) {
    if (kind != "rollouts") return;
    const ExtremeOutcome out = outcome_of(loss_of(kind, type), rows, 0.F, {1, 2, 1});
    EXPECT_EQ(out.loss, 0.0) << type;
    EXPECT_TRUE(out.log_probs.empty()) << type;
  });
}

// Log-ratios of 60 nats a token, up and down.
TEST(LossExtremes, LogRatiosFarBeyondTwentyStayFinite) {
  const Batch rows = training_rows(kExtremeRows);
  const batch::GlobalCounts counts = train::count_rows(rows);
  for_every_loss([&](const std::string& kind, const std::string& type) {
    for (const float shift : {60.F, -60.F}) {
      const ExtremeOutcome out = outcome_of(loss_of(kind, type), rows, shift, counts);
      EXPECT_TRUE(out.is_finite()) << type << " " << shift << " " << out.loss;
    }
  });
}

// verl's limits are for this: without them the KL of such a token is infinite, and is said to be.
TEST(LossExtremes, AReferenceThatGivesATokenNothingCostsNoMoreThanTheLimit) {
  const float never = -std::numeric_limits<float>::infinity();
  const Batch rows = with_reference(training_rows(kExtremeRows), never);
  const batch::GlobalCounts counts = train::count_rows(rows);
  const nlohmann::json limited = {{"beta", 0.1}, {"kl_loss_log_ratio_limit", 20}, {"kl_loss_limit", 10}};
  for_every_loss([&](const std::string& kind, const std::string& type) {
    const std::vector<std::string> read = rlhf::loss_options(kind, {type});
    if (std::ranges::find(read, "kl_loss_limit") == read.end()) return;
    EXPECT_TRUE(outcome_of(loss_of(kind, type, limited), rows, 0.1F, counts).is_finite()) << type;
    const ExtremeOutcome plain = outcome_of(loss_of(kind, type, {{"beta", 0.1}}), rows, 0.1F, counts);
    EXPECT_TRUE(std::isinf(plain.loss) && plain.loss > 0) << type << " " << plain.loss;
  });
}

// Infinitely better or worse than the reference: the loss of a pair is at a bound or infinite, never no number.
TEST(LossExtremes, AnInfiniteReferenceOfAChosenAnswerIsAWonPair) {
  const float never = -std::numeric_limits<float>::infinity();
  const Batch rows = with_reference(training_rows(kExtremeRows), never);
  const batch::GlobalCounts counts = train::count_rows(rows);
  for (const char* type : {"sigmoid", "hinge", "apo_zero"}) {
    const ExtremeOutcome out = outcome_of(loss_of("pairs", type), rows, 0.1F, counts);
    EXPECT_TRUE(out.is_finite()) << type << " " << out.loss;
    EXPECT_EQ(out.log_probs.front(), 0.0) << type << ": a won pair pulls no more";
  }
}

}  // namespace
}  // namespace collimate::test

#include "collimate/rlhf/loss/list.h"

#include <gmock/gmock.h>

#include <set>

#include "collimate/batch/teacher_keys.h"
#include "collimate/tensor/autograd.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/loss/two_rows.h"

namespace collimate::rlhf {
namespace {

class Losses : public TwoRows {};

TEST(LossList, NamesAndOptionsAreKnownOnce) {
  std::set<std::string> names;
  for (const std::string& type : loss_types()) EXPECT_TRUE(names.insert(type).second) << type << " stands there twice";
  const nlohmann::json section = base::to_json(AlgorithmOptions().section_value());
  for (const LossEntry& entry : losses())
    for (const std::string& type : entry.types)
      for (const std::string& option : entry.options(type)) EXPECT_TRUE(section.contains(option)) << option;
}

// Two steps that the model takes to be right, of which one is, and one that it takes to be wrong.
TEST(LossList, StepsAreLearntByTheLogisticLossOfTheirLabels) {
  Batch rows;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 0, 1}, {0, 0}});
  rows.set_ragged(kStepRight, std::vector<std::vector<float>>{{0, 1, 0}, {0, 0, 0}, {0, 0}});
  LossContext context(rows, {.token_scores = at::tensor({2.F, 1.F, -3.F})}, {3, 3});
  const double value = loss_with("labelled steps", "step_logistic").value(context).item<double>();
  EXPECT_NEAR(value, -(std::log(sigmoid(2)) + std::log(sigmoid(-1)) + std::log(sigmoid(3))) / 3, 1e-6);
  EXPECT_EQ(context.metrics().at("steps/accuracy"), std::pair(2.0, 3.0));
  EXPECT_EQ(context.metrics().at("steps/right"), std::pair(1.0, 3.0));
}

// `collimate help losses` says them.
TEST(LossList, EachIsToldInASentence) {
  const auto is_sentence = [](const std::string& text) {
    return text.size() > 20 && text.ends_with('.') && std::isupper(static_cast<unsigned char>(text[0])) != 0;
  };
  for (const LossEntry& entry : losses()) {
    EXPECT_EQ(entry.about.size(), entry.types.size());
    for (const std::string& type : entry.types) EXPECT_TRUE(is_sentence(entry.about.at(type))) << type;
  }
}

TEST(LossList, ALossOfOtherRowsIsRefused) {
  EXPECT_EQ(base::message_of([&] {
              loss_with("completions", "nll", {{"loss_type", "dapo"}});
            }),
            "[algorithm.loss_type] expected one of nll, dft for completions, got \"dapo\"");
}

// The losses that a program adds are tested by one that adds: tests/e2e/own_parts_test.cpp.
TEST(LossList, ATakenNameAndUnknownRowsAreRefused) {
  const LossEntry sft = losses().front();
  EXPECT_EQ(base::message_of([&] { register_losses(sft); }),
            "[register_losses] expected a name that is free, got \"nll\" again");
  EXPECT_EQ(base::message_of([&] {
              register_losses({"sentences", {"own"}, sft.options, sft.make});
            }),
            "[register_losses] expected rows of one of the kinds completions, taught completions, pairs, scored pairs, "
            "labelled steps, marked, rollouts, values, got \"sentences\"");
}

TEST_F(Losses, SftIsTheMeanOverTokensAndDftWeighsThem) {
  EXPECT_NEAR(value(loss_with("completions", "nll")), 2.0, 1e-6);
  const double weighted = (std::exp(-1) + 4 * std::exp(-2) + 3 * std::exp(-3)) / 4;
  EXPECT_NEAR(value(loss_with("completions", "nll", {{"loss_type", "dft"}})), weighted, 1e-6);
}

TEST_F(Losses, DistillationComparesOutcomesOfBothDistributions) {
  rows_.set_ragged(batch::of_width(batch::kTeacherIds, 1), std::vector<std::vector<int32_t>>{{3, 4}, {5, 6}});
  const auto logs = [](float p) { return std::vector<float>(2, std::log(p)); };
  rows_.set_ragged(batch::of_width(batch::kTeacherLogProbs, 1),
                   std::vector<std::vector<float>>{logs(0.6F), logs(0.9F)});
  rows_.set_ragged(batch::kTeacherRest, std::vector<std::vector<float>>{logs(0.4F), logs(0.1F)});
  const at::Tensor listed = at::tensor({0.5F, 0.5F, 0.2F, 0.2F}).log();
  const auto of = [&](const std::string& type, const nlohmann::json& options = {}) {
    Quantities quantities{.log_probs = at::tensor({-1.F, -2.F, -2.F, -3.F})};
    quantities.listed = listed.unsqueeze(1);
    quantities.rest = (1 - listed.exp()).log();
    return value_alone(loss_with("taught completions", type, options), rows_, quantities, {4, 2, 2});
  };
  const auto kl = [](double a, double b) { return a * std::log(a / b) + (1 - a) * std::log((1 - a) / (1 - b)); };
  const auto jsd = [&](double beta, double p, double q) {
    const double m = beta * q + (1 - beta) * p;
    return beta * kl(q, m) + (1 - beta) * kl(p, m);
  };
  const double forward = (kl(0.6, 0.5) + kl(0.9, 0.2)) / 2;
  EXPECT_NEAR(of("forward_kl"), forward, 1e-6);
  EXPECT_NEAR(of("reverse_kl"), (kl(0.5, 0.6) + kl(0.2, 0.9)) / 2, 1e-6);
  EXPECT_NEAR(of("jsd", {{"jsd_beta", 0.3}}), (jsd(0.3, 0.5, 0.6) + jsd(0.3, 0.2, 0.9)) / 2, 1e-6);
  EXPECT_NEAR(of("jsd", {{"jsd_beta", 0}}), forward, 1e-6);
  EXPECT_NEAR(of("jsd", {{"jsd_beta", 1}}), of("reverse_kl"), 1e-6);
  EXPECT_NEAR(of("forward_kl", {{"data_loss_weight", 0.25}, {"distillation_temperature", 2}}),
              0.75 * 4 * forward + 0.25 * 2, 1e-6);
}

TEST_F(Losses, KtoComparesWithTheEstimateOfTheKl) {
  rows_.set(kDesirable, std::vector<float>{1, 0});
  rows_.set(kKlEstimate, std::vector<float>{0.25F, 0.25F});
  const double gain = 1 - sigmoid(0.1 * (1.0 - 0.25)), harm = 1 - sigmoid(0.1 * (0.25 + 0.5));
  EXPECT_NEAR(value(loss_with("marked", "kto", {{"undesirable_weight", 1.5}})), (gain + 1.5 * harm) / 2, 1e-6);
  EXPECT_NEAR(value(loss_with("marked", "apo_zero_unpaired")), (1 - sigmoid(0.1) + sigmoid(-0.05)) / 2, 1e-6);
}

// One row with two trainable tokens whose returns are 1.
Batch row_of_values(float first, float second) {
  Batch rows;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}});
  rows.set_ragged(batch::kValues, std::vector<std::vector<float>>{{0, first, second}});
  rows.set_ragged(batch::kReturns, std::vector<std::vector<float>>{{0, 1.F, 1.F}});
  return rows;
}

TEST(ValueLoss, TakesTheWorseOfClippedAndFree) {
  const Batch rows = row_of_values(0.F, 1.F);
  // The loss, and the part of the tokens whose clipped error is the larger; -1 where it is not reported.
  const auto value = [&](const nlohmann::json& clip) {
    LossContext context(rows, {.values = at::tensor({0.5F, 1.F})}, {2, 1});
    const double loss = loss_with("values", "value", {{"value_clip", clip}}).value(context).item<double>();
    const auto clipped = context.metrics().find("critic/vf_clipfrac");
    return std::pair(loss, clipped == context.metrics().end() ? -1.0 : clipped->second.first / clipped->second.second);
  };
  EXPECT_NEAR(value(0.2).first, 0.5 * (0.8 * 0.8) / 2, 1e-6);
  EXPECT_EQ(value(0.2).second, 0.5);
  EXPECT_NEAR(value(0.0).first, 0.5 * (1.0 * 1.0) / 2, 1e-6);  // the old value's error
  EXPECT_EQ(value(0.0).second, 0.5);
  EXPECT_NEAR(value(nullptr).first, 0.5 * (0.5 * 0.5) / 2, 1e-6);
  EXPECT_EQ(value(nullptr).second, -1.0);
}

// This is as in a first update. The second token's value has moved and its old one is worse: no gradient with a clip of
// 0.
TEST(ValueLoss, AValueThatHasNotMovedHasItsWholeGradient) {
  const Batch rows = row_of_values(0.5F, 0.F);
  const auto gradient = [&](const nlohmann::json& clip) {
    const at::Tensor values = tensor::make_leaf(at::tensor({0.5F, 0.1F}));
    LossContext context(rows, {.values = values}, {2, 1});
    const at::Tensor loss = loss_with("values", "value", {{"value_clip", clip}}).value(context);
    const at::Tensor found = tensor::gradients_of(loss, {values})[0];
    return std::vector<float>(found.const_data_ptr<float>(), found.const_data_ptr<float>() + 2);
  };
  const float first = (0.5F - 1.F) / 2, second = (0.1F - 1.F) / 2;
  EXPECT_EQ(gradient(0.0), (std::vector<float>{first, 0.F}));
  EXPECT_EQ(gradient(0.2), (std::vector<float>{first, second}));
  EXPECT_EQ(gradient(nullptr), (std::vector<float>{first, second}));
}

TEST(ValueLoss, AClipBelowZeroIsRefused) {
  EXPECT_THAT(base::message_of([&] {
                loss_with("values", "value", {{"value_clip", -1}});
              }),
              testing::HasSubstr("expected value_clip to be at least 0, got -1.0"));
}

}  // namespace
}  // namespace collimate::rlhf

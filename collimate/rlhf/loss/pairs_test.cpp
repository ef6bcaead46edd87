#include "tests/support/rlhf/loss/two_rows.h"

namespace collimate::rlhf {
namespace {

class PairLosses : public TwoRows {
 protected:
  double pairs(const std::string& type, const nlohmann::json& options = {}) const {
    return value(loss_with("pairs", type, options));
  }
};

double logistic(double x) { return -std::log(sigmoid(x)); }

TEST_F(PairLosses, DpoComparesLogRatios) {
  const double margin = 1.0 + 0.5;
  EXPECT_NEAR(pairs("sigmoid"), logistic(0.1 * margin), 1e-6);
  EXPECT_NEAR(pairs("hinge"), 1 - 0.1 * margin, 1e-6);
  EXPECT_NEAR(pairs("ipo"), std::pow(margin / 2 - 5, 2), 1e-5);
  EXPECT_NEAR(pairs("sigmoid_norm"), logistic(0.1 * margin / 2), 1e-6);
  EXPECT_NEAR(pairs("sigmoid", {{"label_smoothing", 0.2}}), 0.8 * logistic(0.15) + 0.2 * logistic(-0.15), 1e-6);
  EXPECT_NEAR(pairs("robust", {{"label_smoothing", 0.2}}), (0.8 * logistic(0.15) - 0.2 * logistic(-0.15)) / 0.6, 1e-6);
  EXPECT_NEAR(pairs("nca_pair"), logistic(0.1) + 0.5 * logistic(-0.1) + 0.5 * logistic(0.05), 1e-6);
  EXPECT_NEAR(pairs("apo_down"), sigmoid(0.1) + 1 - sigmoid(0.15), 1e-6);
}

TEST_F(PairLosses, BradleyTerrySubtractsTheChosenRowsMargin) {
  const auto value = [&] {
    LossContext context(rows_, {.row_scores = at::tensor({1.F, 0.75F})}, {4, 2});
    return loss_with("scored pairs", "bradley_terry").value(context).item<double>();
  };
  EXPECT_NEAR(value(), logistic(0.25), 1e-6);
  rows_.set(kMargin, std::vector<float>{2, 5});
  EXPECT_NEAR(value(), logistic(0.25 - 2), 1e-6);
}

// The tokens of a pair are compared one by one, and the pairs count alike however long they are.
TEST_F(PairLosses, TheDivergenceRegionIsTheMeanOverTokensThenOverPairs) {
  Batch rows;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1, 1}, {0, 1}, {0, 1}});
  const auto value = [&](const std::vector<float>& scores) {
    LossContext context(rows, {.row_scores = at::tensor({1.F, 0.F, 0.F, 1.F}), .token_scores = at::tensor(scores)},
                        {static_cast<double>(scores.size()), 4});
    const double loss = loss_with("scored pairs", "divergence_region").value(context).item<double>();
    EXPECT_EQ(context.metrics().at("reward/accuracy"), std::pair(1.0, 2.0)) << "of the scores at the rows' ends";
    return loss;
  };
  const double first = (logistic(1 - 3) + logistic(2 - 0.5)) / 2, second = logistic(4 - 1);
  EXPECT_NEAR(value({1, 2, 3, 0.5F, 4, 1}), (first + second) / 2, 1e-6);
  EXPECT_NEAR(value({1, 2, 1, 2, 4, 4}), std::log(2.0), 1e-6) << "equal scores";
  EXPECT_NEAR(value({-60, -60, 0, 0, 0, 60}), 60, 1e-4);
  // Without padding the last token of the shorter answer stands for those behind it; a row without tokens adds nothing.
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 0, 1}, {0, 0}, {0, 1}});
  EXPECT_NEAR(value({1, 2, 3, 9}), (logistic(1 - 3) + logistic(2 - 3)) / 4, 1e-6);
}

TEST_F(PairLosses, OptionsThatDoNotFitAreRefused) {
  EXPECT_THROW(pairs("sigmiod"), base::InputError);
  EXPECT_THROW(pairs("sigmoid", {{"beta", 0.0}}), base::InputError);
  EXPECT_THROW(pairs("simpo", {{"beta", 0.0}}), base::InputError);
  EXPECT_THROW(pairs("robust", {{"label_smoothing", 0.5}}), base::InputError);
  EXPECT_THROW(pairs("exo_pair"), base::InputError);
  EXPECT_THROW(pairs("sigmoid", {{"f_divergence_type", "renyi"}}), base::InputError);
}

TEST_F(PairLosses, DivergencesTurnLogRatiosIntoScores) {
  const auto with = [&](const char* divergence, const std::string& type = "sigmoid") {
    return pairs(type, {{"f_divergence_type", divergence}});
  };
  EXPECT_NEAR(with("js_divergence"), logistic(0.1 * (std::log(sigmoid(1.0)) - std::log(sigmoid(-0.5)))), 1e-6);
  EXPECT_NEAR(with("forward_kl"), logistic(0.1 * (std::exp(0.5) - std::exp(-1.0))), 1e-6);
  EXPECT_NEAR(with("alpha_divergence"), logistic(0.1 * 2 * (std::exp(0.25) - std::exp(-0.5))), 1e-6);
  // Where lengths differ, constants of the divergence do not cancel in a loss on means.
  rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1, 1}, {0, 0, 1}});
  rows_.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2, -2}, {0, 0, -2.5F}});
  const double chosen = (1 - std::exp(-1.0)) / 3, rejected = 1 - std::exp(0.5);
  EXPECT_NEAR(with("forward_kl", "ipo"), std::pow(chosen - rejected - 5, 2), 1e-4);
}

TEST_F(PairLosses, LongAnswersCanCountLessBeyondTheShorterOne) {
  rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1, 1}, {0, 0, 1}});
  rows_.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2, -3}, {0, 0, -2.5F}});
  EXPECT_NEAR(pairs("sigmoid", {{"ld_alpha", 0.5}}), logistic(0.1 * (1 + 0.5 * (0 + 1) + 0.5)), 1e-6);
  EXPECT_NEAR(pairs("sigmoid", {{"ld_alpha", 1.0}}), pairs("sigmoid"), 1e-9);
}

// Log-probs less the log of Σ p² are -1 a token on average of the chosen answer, -1.5 of the rejected one.
TEST_F(PairLosses, PairsCanWeighByHowLikelyThePolicyIsToWriteThem) {
  const nlohmann::json weighted = {{"use_weighting", true}};
  const auto with = [&](const std::string& type, const nlohmann::json& more = {}) {
    nlohmann::json options = weighted;
    if (!more.is_null()) options.update(more);
    const Quantities quantities{.log_probs = at::tensor({-1.F, -2.F, -2.F, -3.F}),
                                .log_collision = at::tensor({-0.5F, -0.5F, -1.5F, -0.5F})};
    return value_alone(loss_with("pairs", type, options), rows_, quantities, {4, 2, 2});
  };
  const double weight = std::exp(-1 - 1.5);
  EXPECT_NEAR(with("sigmoid"), weight * pairs("sigmoid"), 1e-6);
  EXPECT_NEAR(with("ipo"), weight * pairs("ipo"), 1e-5);
  const nlohmann::json both = {{"loss_type", {"sigmoid", "sft"}}};
  EXPECT_NEAR(with("sigmoid", both), weight * pairs("sigmoid") + pairs("sft"), 1e-6) << "TRL's sft has no pairs";
  EXPECT_TRUE(loss_with("pairs", "hinge", weighted).needs.log_collision);
  EXPECT_FALSE(loss_with("pairs", "hinge").needs.log_collision);
  EXPECT_FALSE(loss_with("pairs", "aot", weighted).needs.log_collision);
}

TEST_F(PairLosses, OptimalTransportOfOnePairIsDpo) {
  EXPECT_NEAR(pairs("aot"), pairs("sigmoid"), 1e-9);
  EXPECT_NEAR(pairs("aot_unpaired"), pairs("sigmoid"), 1e-9);
}

TEST_F(PairLosses, SumsAreWeighted) {
  const nlohmann::json both = {{"loss_type", {"sigmoid", "sft"}}, {"loss_weights", {0.5, 2.0}}};
  EXPECT_NEAR(pairs("hinge", both), 0.5 * pairs("sigmoid") + 2.0 * 1.5, 1e-6);
  EXPECT_EQ(loss_with("pairs", "hinge", both).needs.rows_per_unit, 2);
  EXPECT_THROW(pairs("hinge", {{"loss_type", {"sigmoid", "sft"}}, {"loss_weights", {0.5}}}), base::InputError);
  EXPECT_THROW(pairs("hinge", {{"loss_type", {"sigmoid", "orpo"}}}), base::InputError);  // orpo reads the prompt too
}

TEST_F(PairLosses, OrpoReadsMeansOfAnswersAndTheLikelihoodOfAllTokens) {
  rows_.set_ragged(kCompletion, std::vector<std::vector<float>>{{0, 0, 1}, {0, 1, 1}});
  const auto log_odds = [](double mean) { return mean - std::log1p(-std::exp(mean)); };
  EXPECT_NEAR(pairs("orpo"), 1.5 + 0.1 * logistic(log_odds(-2.0) - log_odds(-2.5)), 1e-6);
}

TEST_F(PairLosses, CpoAndSimpo) {
  EXPECT_NEAR(pairs("cpo"), logistic(0.1 * 2.0) + 1.5, 1e-6);
  EXPECT_NEAR(pairs("cpo_hinge", {{"cpo_alpha", 0.0}}), 0.8, 1e-6);
  EXPECT_NEAR(pairs("cpo_ipo", {{"cpo_alpha", 0.0}}), std::pow(1.0 - 5, 2), 1e-5);
  EXPECT_NEAR(pairs("simpo", {{"beta", 2.0}, {"cpo_alpha", 0.0}}), logistic(2.0 * 1.0 - 0.5), 1e-6);
}

TEST_F(PairLosses, ReferenceFreeLossesReadNoReference) {
  for (const char* type : {"orpo", "cpo", "cpo_hinge", "cpo_ipo", "simpo"})
    EXPECT_FALSE(loss_with("pairs", type).reads(batch::kReferenceLogProbs)) << type;
  EXPECT_TRUE(loss_with("pairs", "sigmoid").reads(batch::kReferenceLogProbs));
}

}  // namespace
}  // namespace collimate::rlhf

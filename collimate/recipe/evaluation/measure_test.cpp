#include "collimate/recipe/evaluation/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/base/error_of.h"

namespace collimate::recipe {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

// The share of all sets of k of n samples, of which the first `right` are right, that have a right one.
double share_of_subsets(int n, int right, int k) {
  int sets = 0, passed = 0;
  for (unsigned set = 0; set < (1U << n); ++set) {
    if (std::popcount(set) != k) continue;
    ++sets;
    passed += (set & ((1U << right) - 1)) != 0;
  }
  return static_cast<double>(passed) / sets;
}

TEST(PassAt, IsTheShareOfAllSubsetsThatHaveARightSample) {
  for (int n = 1; n <= 9; ++n)
    for (int right = 0; right <= n; ++right)
      for (int k = 1; k <= n; ++k)
        EXPECT_NEAR(pass_at(n, right, k), share_of_subsets(n, right, k), 1e-12) << n << " " << right << " " << k;
}

TEST(PassAt, ManySamplesDoNotOverflow) {
  EXPECT_NEAR(pass_at(10000, 1, 5000), 0.5, 1e-9);
  EXPECT_EQ(pass_at(10000, 0, 5000), 0);
  EXPECT_EQ(pass_at(10000, 5001, 5000), 1);
}

TEST(MajorityReward, IsThatOfTheMostFrequentAnswer) {
  EXPECT_EQ(majority_reward({{1, 7}, {0, 3}, {0, 3}}), 0);
  EXPECT_EQ(majority_reward({{1, 7}, {1, 7}, {0, 3}}), 1);
  EXPECT_EQ(majority_reward({{0.25, 7}, {0.75, 7}}), 0.5) << "of samples with one answer their mean";
}

TEST(MajorityReward, AnswersThatAreEquallyFrequentShareIt) {
  const double tie = majority_reward({{1, 7}, {0, 3}});
  EXPECT_EQ(tie, 0.5);
  EXPECT_EQ(majority_reward({{0, 3}, {1, 7}}), tie) << "in any order";
  EXPECT_EQ(majority_reward({{1, 7}, {1, 7}, {0, 3}, {0, 3}, {0, 9}}), 0.5) << "a rarer one has no part in it";
}

std::vector<std::pair<std::string, double>> values(const std::vector<Measure>& measures) {
  std::vector<std::pair<std::string, double>> out;
  for (const Measure& measure : measures) out.emplace_back(measure.name, estimate(measure).value);
  return out;
}

TEST(SampleMeasures, OfTwoPromptsAreTheMeanOverThem) {
  const std::vector<GradedPrompt> prompts = {{1, {{1, 5}, {0, 6}, {0, 6}, {0, 7}}},
                                             {2, {{0, 1}, {0, 2}, {0, 3}, {0, 4}}}};
  EXPECT_THAT(values(sample_measures(prompts, 4, true)),
              ElementsAre(std::pair("mean@4", 0.125), std::pair("best@4", 0.5), std::pair("pass@2", 0.25),
                          std::pair("pass@4", 0.5), std::pair("maj@4", 0.0)));
  EXPECT_THAT(values(sample_measures(prompts, 4, false)),
              ElementsAre(std::pair("mean@4", 0.125), std::pair("best@4", 0.5)))
      << "where no reward means right";
}

TEST(SampleMeasures, TheLastSizeIsAllSamples) {
  const std::vector<GradedPrompt> prompts = {{1, {{1, 5}, {0, 6}, {0, 6}, {0, 7}, {0, 8}, {0, 9}}}};
  std::vector<std::string> names;
  for (const Measure& measure : sample_measures(prompts, 6, true)) names.push_back(measure.name);
  EXPECT_THAT(names, ElementsAre("mean@6", "best@6", "pass@2", "pass@4", "pass@6", "maj@6"));
}

TEST(SampleMeasures, APromptThatLostSamplesIsLeftOut) {
  const std::vector<Measure> measures = sample_measures({{1, {{1, 5}}}, {2, {{0, 1}, {0, 2}}}}, 2, true);
  for (const Measure& measure : measures) EXPECT_THAT(measure.units, ElementsAre(2)) << measure.name;
}

Measure of(const std::vector<double>& values) {
  Measure measure{"accuracy"};
  for (size_t i = 0; i < values.size(); ++i) measure.add(static_cast<int64_t>(i), values[i]);
  return measure;
}

TEST(Estimate, OfAMeanIsTheSampleDeviationOverRootN) {
  const Estimate found = estimate(of({0, 1, 1, 0, 1}));
  EXPECT_DOUBLE_EQ(found.value, 0.6);
  EXPECT_NEAR(found.standard_error, std::sqrt(0.3 / 5), 1e-12);
  EXPECT_EQ(found.units, 5);
  EXPECT_TRUE(std::isnan(estimate(of({1})).standard_error));
  EXPECT_TRUE(std::isnan(estimate(of({})).value));
}

// Rows of random lengths and losses: the spread of the ratio over many draws is what each draw's error says.
TEST(Estimate, OfARatioIsItsSpreadOverDraws) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> length(1, 20);
  std::normal_distribution<double> noise(2.0, 0.5);
  constexpr int kDraws = 2000;
  double sum = 0, squares = 0, told = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Measure perplexity{.name = "perplexity", .exponential = true};
    for (int row = 0; row < 200; ++row) {
      const double tokens = length(random);
      perplexity.add(row, noise(random) * tokens, tokens);
    }
    const Estimate found = estimate(perplexity);
    sum += found.value;
    squares += found.value * found.value;
    told += found.standard_error / kDraws;
  }
  const double spread = std::sqrt(squares / kDraws - sum / kDraws * sum / kDraws);
  EXPECT_NEAR(told / spread, 1, 0.05);
}

TEST(PairedDifference, WhatIsCommonToBothCancels) {
  const Measure first = of({0, 1, 2, 3}), second = of({1, 2, 3, 4});
  const Estimate found = paired_difference(first, second);
  EXPECT_DOUBLE_EQ(found.value, 1);
  EXPECT_NEAR(found.standard_error, 0, 1e-12);
  EXPECT_GT(estimate(first).standard_error, 0.5);
}

TEST(PairedDifference, IsOverTheUnitsThatBothHave) {
  Measure first{"accuracy"}, second{"accuracy"};
  for (const auto& [unit, value] : std::map<int, double>{{1, 0}, {2, 1}, {3, 1}}) first.add(unit, value);
  for (const auto& [unit, value] : std::map<int, double>{{2, 1}, {3, 0}, {4, 0}}) second.add(unit, value);
  const Estimate found = paired_difference(first, second);
  EXPECT_EQ(found.units, 2);
  EXPECT_DOUBLE_EQ(found.value, -0.5);
  EXPECT_THAT(found.standard_error, DoubleNear(0.5, 1e-12));
}

TEST(MarkedMeasures, CompareEveryDesirableAnswerWithEveryOtherOne) {
  const auto measures = marked_measures({{1, 3, true}, {2, 1, false}, {3, 1, true}, {4, 2, false}}, "a", "m");
  EXPECT_DOUBLE_EQ(estimate(measures[0]).value, (1 + 0.25) / 2) << "3 exceeds 1 and 2; 1 ties with 1";
  EXPECT_DOUBLE_EQ(estimate(measures[1]).value, (1.5 - 0.5) / 2);
  EXPECT_EQ(base::message_of([] {
              marked_measures({{1, 3, true}}, "a", "m");
            }),
            "[evaluation] expected held-out answers of both marks, got desirable ones alone; try rows with label: true "
            "and with label: false");
}

}  // namespace
}  // namespace collimate::recipe

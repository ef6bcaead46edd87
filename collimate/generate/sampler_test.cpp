#include "collimate/generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/generate/draw_token.h"

namespace collimate::generate {
namespace {

std::vector<int32_t> draws(const DrawKey& first, const SamplingParams& params, int count = 400) {
  const std::vector<float> logits(50, 0.25F);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    DrawKey key = first;
    key.position += i;
    const Drawn drawn = draw_token(logits, params, {}, key);
    EXPECT_NEAR(drawn.log_prob, -std::log(50.0), 1e-5) << "before truncation";
    tokens.push_back(drawn.token);
  }
  return tokens;
}

TEST(Sampler, EveryCoordinateOfTheDrawCounts) {
  const SamplingParams params;
  const auto base = draws({1, 2, 3}, params);
  EXPECT_EQ(draws({1, 2, 3}, params), base);
  EXPECT_NE(draws({9, 2, 3}, params), base);
  EXPECT_NE(draws({1, 9, 3}, params), base);
  SamplingParams seeded;
  seeded.seed = 5;
  EXPECT_NE(draws({1, 2, 3}, seeded), base);
  EXPECT_EQ(std::set(base.begin(), base.end()).size(), 50U) << "400 positions visit all 50 tokens";
}

TEST(Sampler, ParametersReachTheDraw) {
  SamplingParams params;
  params.temperature = 0.0;
  EXPECT_EQ(draws({1, 2, 3}, params), std::vector<int32_t>(400, 0)) << "ties go to the lower id";
  params.temperature = 0.7;
  params.top_k = 5;
  auto tokens = draws({1, 2, 3}, params);
  EXPECT_EQ(std::set(tokens.begin(), tokens.end()), (std::set<int32_t>{0, 1, 2, 3, 4}));
  params.top_k = 0;
  params.top_p = 0.1;
  tokens = draws({1, 2, 3}, params);
  EXPECT_LE(*std::max_element(tokens.begin(), tokens.end()), 5);

  std::vector<float> logits(50, 0.0F);
  logits[7] = 1.0F;
  params = {};
  params.min_p = 0.9;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(draw_token(logits, params, {}, {1, 2, i}).token, 7);
}

// Like the log-prob of the drawn token they are of the logits as they came, at the temperature; at 1 for a greedy draw.
TEST(Sampler, TopLogProbsAreBeforeStagesAndTruncation) {
  std::vector<float> logits(50, 0.0F);
  logits[7] = 3.0F, logits[9] = 2.0F, logits[30] = 2.0F;
  SamplingParams params;
  params.top_k = 1;
  params.logit_bias = {{40, 100.0}};
  params.top_log_probs = 4;
  for (const double temperature : {1.0, 0.5, 0.0}) {
    params.temperature = temperature;
    const Drawn drawn = draw_token(logits, params, {}, {1, 2, 3});
    EXPECT_EQ(drawn.token, 40);
    ASSERT_EQ(drawn.top.size(), 4U);
    const double factor = temperature == 0 ? 1.0 : 1 / temperature;
    const double sum = 47 + 2 * std::exp(2 * factor) + std::exp(3 * factor);
    const std::pair<int32_t, double> want[] = {{7, 3 * factor}, {9, 2 * factor}, {30, 2 * factor}, {0, 0.0}};
    for (size_t rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(drawn.top[rank].token, want[rank].first);
      EXPECT_NEAR(drawn.top[rank].log_prob, want[rank].second - std::log(sum), 1e-5);
    }
  }
  params.top_log_probs = 0;
  EXPECT_TRUE(draw_token(logits, params, {}, {1, 2, 3}).top.empty());
}

}  // namespace
}  // namespace collimate::generate

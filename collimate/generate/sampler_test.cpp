#include "collimate/generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

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

}  // namespace
}  // namespace collimate::generate

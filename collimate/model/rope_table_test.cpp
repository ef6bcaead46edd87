#include "collimate/model/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "collimate/tensor/host_access.h"

namespace collimate::model {
namespace {

float seen(const float* numbers, int64_t at) { return tensor::HostRead({}, numbers + at, 1)[0]; }

shape::ModelShape shape_with(nlohmann::json scaling) {
  shape::ModelShape shape;
  shape.blocks = {{.attention = {.heads = 1, .kv_heads = 1, .head_dim = 16}}};
  shape.rope_theta = 500000;
  shape.max_positions = 1024;
  shape.rope_scaling = std::move(scaling);
  return shape;
}

TEST(RopeTable, FrequenciesOfEveryScaling) {
  const auto plain = rope_inverse_frequencies(shape_with(nullptr));
  const auto linear = rope_inverse_frequencies(shape_with({{"rope_type", "linear"}, {"factor", 4.0}}));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(plain[i] * std::pow(500000.0, static_cast<double>(i) / 8), 1.0, 1e-6);
    EXPECT_EQ(linear[i], plain[i] / 4);
  }
}

// By the published rule: theta (factor length / positions - (factor - 1)) ^ (channels / (channels - 2)).
TEST(RopeTable, ADynamicRopeIsMadeForTheLongestSequence) {
  const shape::ModelShape shape = shape_with({{"rope_type", "dynamic"}, {"factor", 4.0}});
  EXPECT_EQ(shape.positions(), 4096);
  const auto plain = rope_inverse_frequencies(shape_with(nullptr));
  for (const int64_t longest : {1, 1024, 1025, 2048, 4096, 0}) {
    const int64_t reached = longest == 0 ? 4096 : std::max<int64_t>(longest, 1024);
    EXPECT_EQ(longest_positions(shape, longest), reached) << longest;
    const double stretched = std::pow(4 * static_cast<double>(reached) / 1024 - 3, 16.0 / 14);
    const auto got = rope_inverse_frequencies(shape, longest);
    for (size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(got[i] / plain[i] * std::pow(stretched, static_cast<double>(i) / 8), 1, 1e-5) << longest;
  }
}

TEST(RopeTable, Llama3KeepsFastAndDividesSlowFrequencies) {
  const auto scaled = rope_inverse_frequencies(shape_with({{"rope_type", "llama3"},
                                                           {"factor", 8.0},
                                                           {"low_freq_factor", 1.0},
                                                           {"high_freq_factor", 4.0},
                                                           {"original_max_position_embeddings", 8192.0}}));
  // These come from the published rule, in double precision by another program.
  const double expected[] = {1.000000000e+00, 1.939227447e-01, 3.760603093e-02, 7.292664737e-03,
                             5.248461610e-04, 3.428102196e-05, 6.647869871e-06, 1.289173172e-06};
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(scaled[i] / expected[i], 1.0, 1e-5) << i;
}

// LongRoPE's factors are those of the longest sequence that may come, whatever comes.
TEST(RopeTable, LongRopeChoosesByTheLongestSequence) {
  const shape::ModelShape shape = shape_with({{"rope_type", "longrope"},
                                              {"short_factor", std::vector<float>(8, 2)},
                                              {"long_factor", std::vector<float>(8, 4)},
                                              {"original_max_position_embeddings", 256},
                                              {"attention_factor", 1.25}});
  const auto plain = rope_inverse_frequencies(shape_with(nullptr));
  for (const int64_t longest : {0, 100, 256, 257, 1024}) {
    const bool is_short = longest > 0 && longest <= 256;
    EXPECT_EQ(rope_inverse_frequencies(shape, longest)[3], plain[3] / (is_short ? 2 : 4)) << longest;
    EXPECT_EQ(longest_positions(shape, longest), is_short ? 256 : 1024) << longest;
  }
  RopeCache cache(plain, {}, rope_magnitude(shape));
  EXPECT_EQ(seen(cache.cover(10).cos, 0), 1.25F);
}

TEST(RopeTable, GrowsWithoutChangingRows) {
  RopeCache cache(rope_inverse_frequencies(shape_with(nullptr)), {});
  const tensor::RopeTable small = cache.cover(10);
  const float before = seen(small.sin, 9 * 8 + 1);
  const tensor::RopeTable large = cache.cover(700);
  EXPECT_GE(large.positions, 700);
  EXPECT_EQ(seen(large.sin, 9 * 8 + 1), before);
  EXPECT_NEAR(seen(large.cos, 699 * 8), std::cos(699.0), 1e-4);
}

}  // namespace
}  // namespace collimate::model

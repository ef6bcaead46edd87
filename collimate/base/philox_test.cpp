#include "collimate/base/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace collimate::base {
namespace {

using Words = std::array<uint32_t, 4>;

// Known-answer vectors of Random123 (tests/kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryCoordinateMatters) {
  const std::set<uint64_t> draws = {random_bits(1, 2, 3, 4),         random_bits(2, 2, 3, 4),
                                    random_bits(1, 3, 3, 4),         random_bits(1, 2, 4, 4),
                                    random_bits(1, 2, 3, 5),         random_bits(1ULL << 32, 2, 3, 4),
                                    random_bits(1, 2, 3ULL << 32, 4)};
  EXPECT_EQ(draws.size(), 7u);
  EXPECT_EQ(random_bits(1, 2, 3, 4), random_bits(1, 2, 3, 4));
}

TEST(Philox, UniformIsInRangeAndEven) {
  constexpr int kDraws = 20000;
  int bins[10] = {};
  for (int i = 0; i < kDraws; ++i) {
    const float value = uniform(7, 1, 42, static_cast<uint32_t>(i));
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    ++bins[static_cast<int>(value * 10)];
  }
  for (const int count : bins) EXPECT_NEAR(count, kDraws / 10, 250);  // about six standard deviations
}

// `uniform` takes its first word, `random_bits` others, so the two are not the same draw.
TEST(Philox, UniformAndBitsAreIndependent) {
  const auto words = philox4x32({3, 0, 4, 2}, {1, 0});
  EXPECT_EQ(uniform(1, 2, 3, 4), static_cast<float>(words[0] >> 8) / 16777216.0f);
  EXPECT_EQ(random_bits(1, 2, 3, 4), static_cast<uint64_t>(words[3]) << 32 | words[2]);
}

// Written to files as uids: these numbers must never change.
TEST(StableHash, PinnedValues) {
  EXPECT_EQ(stable_hash(""), 0xf52a15e9a9b5e89bULL);
  EXPECT_EQ(stable_hash("prompt"), 0xb373e99039badbaaULL);
  EXPECT_EQ(mix(1, 2), 0x8984b70ae8805faeULL);
  EXPECT_NE(mix(1, 2), mix(2, 1));
  EXPECT_NE(mix(0, 0), 0u);
}

}  // namespace
}  // namespace collimate::base

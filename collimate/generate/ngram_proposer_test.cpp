#include "collimate/generate/ngram_proposer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/philox.h"

namespace collimate::generate {
namespace {

using Ids = std::vector<int32_t>;

Ids proposed(const Ids& ids, int64_t most) {
  NgramProposer proposer;
  Ids out = {9, 9};
  proposer.propose(ids, most, out);
  return out;
}

TEST(NgramProposer, ContinuesTheLongestEarlierOccurrence) {
  //               three tokens match here    two here
  const Ids ids = {1, 2, 3, 40, 41, 42, 7, 8, 2, 3, 50, 51, 1, 2, 3};
  EXPECT_EQ(proposed(ids, 3), (Ids{40, 41, 42}));
  EXPECT_EQ(proposed(ids, 1), (Ids{40}));
}

TEST(NgramProposer, TakesTheNewestOfEquallyLongOnes) {
  EXPECT_EQ(proposed({2, 3, 40, 5, 2, 3, 50, 6, 2, 3}, 2), (Ids{50, 6}));
}

TEST(NgramProposer, GoesOnPastTheEndByRepeating) {
  EXPECT_EQ(proposed({5, 4, 4, 4}, 5), (Ids{4, 4, 4, 4, 4}));
  EXPECT_EQ(proposed({9, 1, 2, 3, 1, 2}, 8), (Ids{3, 1, 2, 3, 1, 2, 3, 1}));
}

TEST(NgramProposer, ProposesNothingWithoutAnOccurrence) {
  for (const Ids& ids : {Ids{}, Ids{1}, Ids{1, 1}, Ids{1, 2, 3, 4}, Ids{1, 2, 3, 2, 1}, Ids{2, 1, 2}})
    EXPECT_EQ(proposed(ids, 4), Ids());
  EXPECT_EQ(proposed({1, 1, 1}, 0), Ids());
  EXPECT_EQ(proposed({0, -1, 5, 0, -1}, 1), (Ids{5})) << "pairs are compared whole";
}

// The definition, by trying every place.
Ids by_search(const Ids& ids, int64_t most) {
  const auto end = static_cast<int64_t>(ids.size());
  int64_t best = 0, longest = NgramProposer::kLeastMatch - 1, seen = 0;
  for (int64_t place = end - 1; place >= 2 && seen < NgramProposer::kMostPlaces; --place) {
    int64_t length = 0;
    while (length < std::min(place, NgramProposer::kMostMatch) && ids[place - 1 - length] == ids[end - 1 - length])
      ++length;
    seen += length >= NgramProposer::kLeastMatch;
    if (length > longest) best = place, longest = length;
  }
  Ids out;
  for (int64_t i = 0; best > 0 && i < most; ++i) out.push_back(best + i < end ? ids[best + i] : out[i - (end - best)]);
  return out;
}

// Texts that grow by one or several tokens between the calls, from few and from many words.
TEST(NgramProposer, IsWhatASearchOfTheWholeTextFinds) {
  int64_t found = 0;
  for (uint32_t trial = 0; trial < 60; ++trial) {
    const auto random = [&](uint32_t what, uint64_t below) {
      return static_cast<int64_t>(base::random_bits(trial, 4, 4, what) % below);
    };
    const auto words = static_cast<uint64_t>(2 + random(0, trial < 40 ? 5 : 40));
    NgramProposer proposer;
    Ids ids, out;
    for (uint32_t i = 1; i < 200; ++i) {
      ids.push_back(static_cast<int32_t>(random(i, words)));
      if (random(1000 + i, 3) == 0) continue;
      proposer.propose(ids, 1 + i % 9, out);
      ASSERT_EQ(out, by_search(ids, 1 + i % 9)) << "trial " << trial << ", " << ids.size() << " tokens";
      found += !out.empty();
    }
  }
  EXPECT_GT(found, 1000);
}

TEST(NgramProposer, ForgetsWhenReset) {
  NgramProposer proposer;
  Ids out;
  proposer.propose(Ids{1, 2, 3, 1, 2}, 1, out);
  EXPECT_EQ(out, Ids{3});
  proposer.reset();
  proposer.propose(Ids{7, 7, 1, 2}, 1, out);
  EXPECT_EQ(out, Ids());
  proposer.propose(Ids{7, 7, 1, 2, 5, 7, 7}, 1, out);
  EXPECT_EQ(out, Ids{1});
}

}  // namespace
}  // namespace collimate::generate

#include "collimate/generate/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace collimate::generate {
namespace {

// A sequence of `tokens` tokens from `first` on, all computed.
Sequence computed(BlockPool& pool, int64_t tokens, int32_t first = 0) {
  Sequence sequence;
  sequence.ids.resize(tokens);
  std::iota(sequence.ids.begin(), sequence.ids.end(), first);
  sequence.prompt_tokens = tokens;
  while (static_cast<int64_t>(sequence.blocks.size()) < blocks_for(tokens)) sequence.blocks.push_back(pool.allocate());
  sequence.computed = tokens;
  return sequence;
}

std::vector<int32_t> match(const PrefixCache& cache, uint64_t version, const std::vector<int32_t>& ids) {
  std::vector<int32_t> blocks;
  const int64_t matched = cache.match(version, ids, blocks);
  EXPECT_EQ(matched, static_cast<int64_t>(blocks.size()));
  return blocks;
}

TEST(PrefixCache, MatchesWholeBlocksOfEqualBeginnings) {
  BlockPool pool(8);
  HashedPrefixCache cache(pool);
  Sequence sequence = computed(pool, 40);
  cache.publish(1, sequence);
  EXPECT_EQ(sequence.published, 2);
  const std::vector<int32_t> both = {sequence.blocks[0].id(), sequence.blocks[1].id()};

  EXPECT_EQ(match(cache, 1, sequence.ids), both);
  auto longer = sequence.ids;
  longer.resize(90, 7);
  EXPECT_EQ(match(cache, 1, longer), both);
  auto other = sequence.ids;
  other[20] = 999;
  EXPECT_EQ(match(cache, 1, other), std::vector<int32_t>{both[0]});
  other[3] = 999;
  EXPECT_TRUE(match(cache, 1, other).empty());
  EXPECT_TRUE(match(cache, 2, sequence.ids).empty()) << "another version of the weights";
  // One token has to be left over, so 32 tokens match one block only.
  EXPECT_EQ(match(cache, 1, {sequence.ids.begin(), sequence.ids.begin() + 32}).size(), 1U);
  EXPECT_EQ(match(cache, 1, {sequence.ids.begin(), sequence.ids.begin() + 33}).size(), 2U);
}

TEST(PrefixCache, EqualBlocksBehindOtherBeginningsDiffer) {
  BlockPool pool(8);
  HashedPrefixCache cache(pool);
  Sequence sequence = computed(pool, 33);
  cache.publish(1, sequence);
  std::vector<int32_t> shifted(sequence.ids.begin() + 16, sequence.ids.end());
  shifted.resize(40, 1);
  EXPECT_TRUE(match(cache, 1, shifted).empty());
}

TEST(PrefixCache, FreedBlocksAreFoundUntilTheyAreAllocatedAgain) {
  BlockPool pool(4);
  HashedPrefixCache cache(pool);
  Sequence sequence = computed(pool, 49);
  const auto ids = sequence.ids;
  cache.publish(1, sequence);
  sequence.drop_cache();
  EXPECT_EQ(pool.used(), 0);
  EXPECT_EQ(match(cache, 1, ids).size(), 3U);

  // Ends are overwritten before beginnings: the unpublished fourth block first, then the third.
  const Block first = pool.allocate();
  EXPECT_EQ(match(cache, 1, ids).size(), 3U);
  const Block second = pool.allocate();
  EXPECT_EQ(match(cache, 1, ids).size(), 2U);
  cache.clear();
  EXPECT_TRUE(match(cache, 1, ids).empty());
}

TEST(PrefixCache, ReusedBlockIsKnownByItsNewContentOnly) {
  BlockPool pool(2);
  HashedPrefixCache cache(pool);
  for (int32_t round = 0; round < 5; ++round) {
    Sequence sequence = computed(pool, 20, round * 100);
    cache.publish(1, sequence);
    EXPECT_EQ(match(cache, 1, sequence.ids), std::vector<int32_t>{sequence.blocks[0].id()});
  }
  std::vector<int32_t> old(20);
  std::iota(old.begin(), old.end(), 0);
  EXPECT_TRUE(match(cache, 1, old).empty());
}

TEST(PrefixCache, ComputedTwiceKeepsTheFirst) {
  BlockPool pool(4);
  HashedPrefixCache cache(pool);
  Sequence a = computed(pool, 20), b = computed(pool, 20);
  cache.publish(1, a);
  cache.publish(1, b);
  EXPECT_EQ(match(cache, 1, a.ids), std::vector<int32_t>{a.blocks[0].id()});
}

TEST(PrefixCache, NullObjectFindsNothing) {
  BlockPool pool(4);
  const auto cache = make_prefix_cache(false, pool);
  Sequence sequence = computed(pool, 40);
  cache->publish(1, sequence);
  EXPECT_TRUE(match(*cache, 1, sequence.ids).empty());
  EXPECT_FALSE(cache->remembers());
}

}  // namespace
}  // namespace collimate::generate

#include "collimate/text/bpe.h"

#include <gtest/gtest.h>

#include "collimate/base/philox.h"

namespace collimate::text {
namespace {

// Byte pair encoding as the paper writes it: look for the best pair in the whole word, merge, begin again.
std::vector<int32_t> textbook(const MergeTable& table, std::vector<int32_t> word) {
  while (true) {
    size_t best = word.size();
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto merge = table.find(word[i], word[i + 1]);
      if (merge.rank < 0) continue;
      if (best == word.size() || merge.rank < table.find(word[best], word[best + 1]).rank) best = i;
    }
    if (best == word.size()) return word;
    word[best] = table.find(word[best], word[best + 1]).id;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

// Merges over three letters that build on each other, in an order drawn by `seed`.
MergeTable random_merges(uint64_t seed, int count) {
  MergeTable table(count);
  for (int i = 0; i < count; ++i) {
    const uint64_t bits = base::random_bits(seed, 1, 2, static_cast<uint32_t>(i));
    const int known = 3 + i;
    table.insert(static_cast<int32_t>(bits % known), static_cast<int32_t>((bits >> 32) % known), {i, known});
  }
  return table;
}

TEST(Bpe, QueueAndScanGiveWhatTheTextbookGives) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const MergeTable table = random_merges(seed, 20);
    MergeScratch scratch;
    for (const size_t length : {1, 2, 3, 7, 24, 25, 60, 300}) {
      std::vector<int32_t> word(length);
      for (size_t i = 0; i < length; ++i) word[i] = static_cast<int32_t>(base::random_bits(seed, 7, length, i) % 3);
      std::vector<int32_t> out;
      apply_merges(table, word, scratch, out);
      ASSERT_EQ(out, textbook(table, word)) << "seed " << seed << " length " << length;
    }
  }
}

TEST(Bpe, EqualRanksMergeFromTheLeft) {
  MergeTable table(1);
  table.insert(0, 0, {0, 1});
  MergeScratch scratch;
  std::vector<int32_t> out;
  apply_merges(table, std::vector<int32_t>(31, 0), scratch, out);
  std::vector<int32_t> expected(15, 1);
  expected.push_back(0);
  EXPECT_EQ(out, expected);
}

TEST(Bpe, NothingInNothingOut) {
  MergeScratch scratch;
  std::vector<int32_t> out;
  apply_merges(MergeTable(), {}, scratch, out);
  EXPECT_TRUE(out.empty());
}

TEST(Bpe, ALaterInsertOfAPairWins) {
  MergeTable table(2);
  table.insert(1, 2, {0, 9});
  table.insert(1, 2, {5, 9});
  EXPECT_EQ(table.find(1, 2).rank, 5);
  EXPECT_EQ(table.find(2, 1).rank, -1);
}

}  // namespace
}  // namespace collimate::text

#include "collimate/train/micro_batch.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::train {
namespace {

// Rows whose first `untrained[r]` tokens are not trained.
Batch rows_of(const std::vector<std::vector<int32_t>>& ids, const std::vector<size_t>& untrained) {
  std::vector<std::vector<uint8_t>> trainable;
  for (size_t r = 0; r < ids.size(); ++r) {
    trainable.emplace_back(ids[r].size(), 1);
    std::fill_n(trainable.back().begin(), untrained[r], 0);
  }
  Batch rows;
  rows.set_ragged(batch::kIds, ids);
  rows.set_ragged(batch::kTrainable, trainable);
  return rows;
}

std::vector<int32_t> prompt(int32_t first) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 16; ++i) ids.push_back(first + i);
  return ids;
}

std::vector<int32_t> operator+(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(SplitRows, TakesWholeUnitsUpToTheTokens) {
  std::vector<std::vector<int32_t>> ids;
  for (const size_t length : {2, 3, 4, 1, 9, 1, 2, 2}) ids.emplace_back(length, 7);
  const Batch rows = rows_of(ids, std::vector<size_t>(ids.size(), 1));
  const auto ends = [&](int64_t tokens, int64_t unit) {
    std::vector<int64_t> out;
    int64_t begin = 0;
    for (const RowRange& range : split_rows(rows, tokens, unit)) {
      EXPECT_EQ(range.begin, begin);
      out.push_back(begin = range.end);
    }
    return out;
  };
  using Ends = std::vector<int64_t>;
  EXPECT_EQ(ends(5, 1), (Ends{2, 4, 5, 8})) << "5 tokens, 5, one row of 9, 5";
  EXPECT_EQ(ends(4, 1), (Ends{1, 2, 3, 4, 5, 7, 8}));
  EXPECT_EQ(ends(10, 2), (Ends{4, 6, 8}));
  EXPECT_EQ(ends(1000, 4), Ends{8});
  EXPECT_THROW(split_rows(rows, 5, 3), base::InputError);
}

TEST(PackRows, APromptOfAdjacentRowsIsPackedOnce) {
  const auto p = prompt(100), q = prompt(200);
  const Batch rows =
      rows_of({p + std::vector<int32_t>{1, 2}, p + std::vector<int32_t>{3}, q + std::vector<int32_t>{4}}, {16, 16, 16});
  const PackedRows packed = pack_rows(rows);
  EXPECT_EQ(packed.tokens.ids, (p + std::vector<int32_t>{1, 2, 3} + q + std::vector<int32_t>{4}));
  EXPECT_EQ(packed.tokens.starts, (std::vector<int32_t>{0, 16, 18, 19, 36}));
  EXPECT_EQ(packed.tokens.continued, (std::vector<int32_t>{-1, 0, 0, -1}));
  EXPECT_EQ(packed.tokens.positions[16], 16);
  EXPECT_EQ(packed.tokens.positions[18], 16);
  EXPECT_EQ(packed.predictors, (std::vector<int64_t>{15, 16, 15, 34}));  // the prompt's last token, twice
  EXPECT_EQ(packed.targets, (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_EQ(packed.last_tokens, (std::vector<int64_t>{17, 18, 35}));
  EXPECT_EQ(packed.row_tokens, 18 + 17 + 17);
}

// The recorded experts of a token go where the token goes.
TEST(PackRows, RecordedRoutesFollowTheirTokens) {
  const auto p = prompt(100);
  const std::vector<std::vector<int32_t>> ids = {p + std::vector<int32_t>{1, 2}, p + std::vector<int32_t>{3}, {50, 51}};
  Batch rows = rows_of(ids, {16, 16, 1});
  EXPECT_TRUE(pack_rows(rows, RecordedRoutes::kCompared).tokens.experts.empty());
  EXPECT_THROW(pack_rows(rows, RecordedRoutes::kReplayed), base::InputError);
  std::vector<std::vector<int16_t>> experts(3);
  for (size_t r = 0; r < 3; ++r)
    for (const int32_t id : ids[r])
      for (const int32_t expert : {id, id + 1}) experts[r].push_back(static_cast<int16_t>(expert));
  rows.set_ragged(batch::routed_experts(2), experts);
  EXPECT_TRUE(pack_rows(rows).tokens.experts.empty());
  for (const RecordedRoutes routes : {RecordedRoutes::kCompared, RecordedRoutes::kReplayed}) {
    const model::TokenBatch tokens = pack_rows(rows, routes).tokens;
    EXPECT_EQ(tokens.replayed, routes == RecordedRoutes::kReplayed);
    std::vector<int16_t> want;
    for (const int32_t id : tokens.ids)
      for (const int32_t expert : {id, id + 1}) want.push_back(static_cast<int16_t>(expert));
    EXPECT_EQ(tokens.experts, want);
  }
}

TEST(PackRows, RowsThatDifferAheadOfTheirTrainedTokensShareNothing) {
  const auto p = prompt(100);
  auto other = p;
  other[15] = 7;
  // Another last token, a prompt that ends sooner, and rows without trained tokens of one length and of another.
  const Batch rows = rows_of({p + std::vector<int32_t>{1}, other + std::vector<int32_t>{1}, p + std::vector<int32_t>{1},
                              p + std::vector<int32_t>{1, 2}, p},
                             {16, 16, 15, 18, 16});
  const PackedRows packed = pack_rows(rows);
  EXPECT_EQ(packed.tokens.continued, std::vector<int32_t>(5, -1));
  EXPECT_EQ(static_cast<int64_t>(packed.tokens.ids.size()), packed.row_tokens);
}

// Sharing takes a block of keys and values: two rows of a prompt of 15 tokens would save less than one.
TEST(PackRows, AShortPromptIsSharedByManyRowsOnly) {
  const std::vector<int32_t> row = {5, 6, 7, 8, 1};
  const auto packed = [&](size_t count) {
    return pack_rows(rows_of(std::vector<std::vector<int32_t>>(count, row), std::vector<size_t>(count, 4)));
  };
  EXPECT_EQ(packed(4).tokens.ids.size(), 20U);
  EXPECT_EQ(packed(5).tokens.ids.size(), 9U);
}

TEST(PackRows, ARowMayBeginAtAnotherPositionAndSharesWithThoseThatBeginThere) {
  const auto p = prompt(100) + std::vector<int32_t>{9};
  Batch rows = rows_of({p, p, p}, {16, 16, 16});
  rows.set(batch::kFirstPosition, std::vector<int64_t>{3, 3, 0});
  const PackedRows packed = pack_rows(rows);
  EXPECT_EQ(packed.tokens.starts, (std::vector<int32_t>{0, 16, 17, 18, 35}));
  EXPECT_EQ(packed.tokens.continued, (std::vector<int32_t>{-1, 0, 0, -1}));
  EXPECT_EQ(packed.tokens.positions[0], 3);
  EXPECT_EQ(packed.tokens.positions[16], 19);
  EXPECT_EQ(packed.tokens.positions[18], 0);
}

// A token's noise is of the tokens of its row up to it, wherever they are packed.
TEST(PackRows, NoiseIsOfARowsTokensUpToEach) {
  const auto p = prompt(100);
  const std::vector<std::vector<int32_t>> texts = {
      p + std::vector<int32_t>{1, 2}, p + std::vector<int32_t>{1, 3}, p + std::vector<int32_t>{4, 2, 2}, {5, 6, 7}};
  const model::TokenBatch together = pack_rows(rows_of(texts, {16, 16, 16, 1}), {}, {}, 77).tokens;
  EXPECT_EQ(together.continued, (std::vector<int32_t>{-1, 0, 0, 0, -1}));
  ASSERT_EQ(together.noise.size(), together.ids.size());
  std::map<std::vector<int32_t>, uint64_t> noise;  // by the tokens up to one
  for (size_t s = 0; s + 1 < together.starts.size(); ++s) {
    std::vector<int32_t> up_to;
    if (together.continued[s] >= 0) up_to = p;
    for (int32_t t = together.starts[s]; t < together.starts[s + 1]; ++t) {
      up_to.push_back(base::at(together.ids, t));
      const auto [at, is_new] = noise.emplace(up_to, base::at(together.noise, t));
      EXPECT_EQ(at->second, base::at(together.noise, t));
    }
  }
  std::set<uint64_t> keys;
  for (const auto& [tokens, key] : noise) keys.insert(key);
  EXPECT_EQ(keys.size(), noise.size()) << "each its own";
  for (const auto& text : texts) {
    const model::TokenBatch alone = pack_rows(rows_of({text}, {1}), {}, {}, 77).tokens;
    for (size_t t = 0; t < text.size(); ++t)
      EXPECT_EQ(alone.noise[t],
                noise.at(std::vector<int32_t>(text.begin(), text.begin() + static_cast<int64_t>(t) + 1)));
  }
  EXPECT_NE(pack_rows(rows_of({texts[3]}, {1}), {}, {}, 78).tokens.noise[0], noise.at({5}));
  EXPECT_TRUE(pack_rows(rows_of(texts, {16, 16, 16, 1})).tokens.noise.empty());
}

// Two samples that ended at once and were not to be trained: each keeps a token of its own.
TEST(PackRows, RowsWithoutTrainedTokensKeepTheirLast) {
  const auto p = prompt(100) + std::vector<int32_t>{9};
  const PackedRows packed = pack_rows(rows_of({p, p}, {17, 17}));
  EXPECT_EQ(packed.tokens.starts, (std::vector<int32_t>{0, 16, 17, 18}));
  EXPECT_EQ(packed.last_tokens, (std::vector<int64_t>{16, 17}));
  EXPECT_TRUE(packed.predictors.empty());
}

TEST(PackRows, TrainedTokensAndTheLastOneAheadOfPaddingHaveTheirPlaces) {
  const auto p = prompt(100);
  Batch rows = rows_of({p + std::vector<int32_t>{1, 2}, p + std::vector<int32_t>{0, 0}, {5, 6, 7}}, {16, 16, 1});
  rows.set(batch::kUnpaddedTokens, std::vector<int64_t>{18, 16, 2});
  const PackedRows packed = pack_rows(rows);
  EXPECT_EQ(packed.trained, (std::vector<int64_t>{16, 17, 18, 19, 21, 22}));
  EXPECT_EQ(packed.last_tokens, (std::vector<int64_t>{17, 15, 21})) << "the shared prompt's last token is one";
  for (const int64_t wrong : {0, 4}) {
    rows.set(batch::kUnpaddedTokens, std::vector<int64_t>{18, 16, wrong});
    EXPECT_THROW(pack_rows(rows), base::InputError);
  }
}

}  // namespace
}  // namespace collimate::train

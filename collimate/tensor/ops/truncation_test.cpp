#include "collimate/tensor/ops/truncation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "collimate/tensor/ops/log_prob.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

// Weights of a row before and after truncation, on this machine's instruction set.
struct Truncated {
  Floats before, after;

  Truncated(const Floats& x, const SampleOptions& options) : before(x.size()) {
    const auto vocab = static_cast<int64_t>(x.size());
    const RowNormalizer norm = row_normalizer(x.data(), vocab, before.data());
    after = before;
    truncate_weights(options, x.data(), vocab, norm.max, after.data());
  }
  std::set<int32_t> kept() const {
    std::set<int32_t> ids;
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] != 0.0F) ids.insert(static_cast<int32_t>(i));
    }
    return ids;
  }
};

// Gives what the options leave, by a sort of the whole row and the words of their comments.
std::set<int32_t> plainly_kept(const Floats& x, const Floats& weights, const SampleOptions& options) {
  std::vector<int32_t> ids(x.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return x[a] > x[b]; });
  if (options.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(options.top_k)));
  if (options.top_p < 1.0F) {
    double mass = 0, sum = 0;
    for (const int32_t id : ids) mass += weights[id];
    size_t count = 0;
    while (count < ids.size() && (count == 0 || sum < static_cast<double>(options.top_p) * mass)) {
      sum += weights[ids[count++]];
    }
    ids.resize(count);
  }
  std::erase_if(ids, [&](int32_t id) { return weights[id] < options.min_p; });
  return {ids.begin(), ids.end()};
}

TEST(Truncation, StagesAreInTheDocumentedOrder) {
  std::vector<std::string> names;
  for (const TruncationStage& stage : truncation_stages()) names.emplace_back(stage.name);
  EXPECT_EQ(names, (std::vector<std::string>{"top_k", "top_p", "min_p"}));
}

TEST(Truncation, DefaultsKeepEveryBit) {
  const Floats x = noise(100, 1, 3.0F);
  for (const TruncationStage& stage : truncation_stages()) EXPECT_FALSE(stage.active({}, 100)) << stage.name;
  const Truncated row(x, {});
  EXPECT_TRUE(same_bits(row.before, row.after));
}

TEST(Truncation, EachStageIsActiveForItsOwnOptionAlone) {
  const SampleOptions options[] = {{.top_k = 5}, {.top_p = 0.5F}, {.min_p = 0.1F}};
  for (size_t option = 0; option < 3; ++option) {
    for (size_t stage = 0; stage < 3; ++stage) {
      EXPECT_EQ(truncation_stages()[stage].active(options[option], 100), option == stage);
    }
  }
  EXPECT_FALSE(truncation_stages()[0].active({.top_k = 100}, 100)) << "as many as there are";
}

// One stage by itself, on a list that an earlier one has left: only tokens of the list stay.
TEST(Truncation, AStageTakesOutOfWhatTheOneBeforeLeft) {
  const Floats x = {std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.25F), std::log(0.05F)};
  Floats weights(5);
  const RowNormalizer norm = row_normalizer(x.data(), 5, weights.data());
  const auto apply = [&](size_t stage, const SampleOptions& options, std::vector<int32_t> left) {
    Candidates row{.x = x.data(), .weights = weights.data(), .vocab = 5, .max = norm.max, .listed = true, .ids = left};
    truncation_stages()[stage].apply(options, row);
    std::sort(row.ids.begin(), row.ids.end());
    return row.ids;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(apply(0, {.top_k = 2}, {0, 2, 4}), (Ids{0, 2}));
  EXPECT_EQ(apply(1, {.top_p = 0.6F}, {0, 2, 4}), (Ids{0, 2}));  // 0.2 of 0.35 is too little
  EXPECT_EQ(apply(1, {.top_p = 0.5F}, {0, 2, 4}), (Ids{2}));
  EXPECT_EQ(apply(2, {.min_p = 0.45F}, {0, 2, 4}), (Ids{2}));  // of the most likely token of all, 0.4
}

// 0.4 and 0.25 are 0.65 of all and 0.76 of what top-k left: only after top-k do they reach 0.7.
TEST(Truncation, TopPCountsTheMassThatTopKLeft) {
  const Floats x = {std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.25F), std::log(0.05F)};
  EXPECT_EQ(Truncated(x, {.top_p = 0.7F}).kept(), (std::set<int32_t>{1, 2, 3}));
  EXPECT_EQ(Truncated(x, {.top_k = 3, .top_p = 0.7F}).kept(), (std::set<int32_t>{1, 3}));
}

// All combinations, on rows with and without equal values: what stays is what the words say, with its bits.
TEST(Truncation, KeepsWhatAPlainSortKeepsWithTheSameBits) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    Floats x = noise(700, seed, seed == 4 ? 200.0F : 5.0F);  // with 200 most weights are 0
    if (seed % 2 == 0) std::transform(x.begin(), x.end(), x.begin(), [](float v) { return std::round(4 * v) / 4; });
    for (const int32_t top_k : {0, 1, 40, 699, 700}) {
      for (const float top_p : {1.0F, 0.95F, 0.5F, 1e-6F}) {
        for (const float min_p : {0.0F, 0.02F, 1.0F}) {
          const SampleOptions options{.temperature = 1.0F, .top_k = top_k, .top_p = top_p, .min_p = min_p};
          const Truncated row(x, options);
          std::set<int32_t> want = plainly_kept(x, row.before, options);
          std::erase_if(want, [&](int32_t id) { return row.before[id] == 0.0F; });
          ASSERT_EQ(row.kept(), want) << "seed " << seed << ", " << top_k << ", " << top_p << ", " << min_p;
          for (const int32_t id : want) ASSERT_TRUE(same_bits(&row.after[id], &row.before[id], 1));
        }
      }
    }
  }
}

}  // namespace
}  // namespace collimate::tensor

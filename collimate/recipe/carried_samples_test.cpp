#include "collimate/recipe/carried_samples.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "collimate/base/memory_state.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/payload.h"
#include "collimate/rlhf/types/rounds.h"

namespace collimate::recipe {
namespace {

constexpr int64_t kSamples = 2;

// Two samples of a prompt, as the data has them.
Batch rows_of_example(int64_t example) {
  Batch rows;
  rows.set(batch::kUid, std::vector<int64_t>{10 * example, 10 * example + 1});
  rows.set(batch::kPromptUid, std::vector<int64_t>(kSamples, example));
  rows.set(batch::kPromptTokens, std::vector<int64_t>(kSamples, 2));
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>(kSamples, {5, 6}));
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(kSamples, {0, 0}));
  rows.set_json(batch::kExample,
                std::vector<nlohmann::json>(kSamples, nlohmann::json::object({{"ground_truth", example}})));
  return rows;
}

// Rows as generation leaves them: those of `finished` have ended, and each has a token more.
Batch drawn(const Batch& rows, const std::set<int64_t>& finished) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<float>> log_probs;
  std::vector<std::vector<int64_t>> versions;
  std::vector<int32_t> finish;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto before = rows.row(batch::kIds, r);
    const auto drawn_by = rows.row(batch::kWeightsVersion, r);
    ids.emplace_back(before.begin(), before.end()).push_back(7);
    versions.emplace_back(drawn_by.begin(), drawn_by.end()).push_back(rows.get(rlhf::kRound, r) + 1);
    log_probs.emplace_back(ids.back().size(), -1.F);
    const bool ended = rows.get(batch::kFinish, r) != rlhf::kUnfinished || finished.contains(rows.get(batch::kUid, r));
    finish.push_back(ended ? 1 : rlhf::kUnfinished);
  }
  Batch out = rows;
  out.set_ragged(batch::kIds, ids);
  out.set_ragged(batch::kLogProbs, log_probs);
  out.set_ragged(batch::kWeightsVersion, versions);
  out.set(batch::kFinish, finish);
  out.set_ragged(batch::routed_experts(1), std::vector<std::vector<int16_t>>(static_cast<size_t>(rows.rows()), {1}));
  return out;
}

using Uids = std::vector<int64_t>;

TEST(CarriedSamples, AnIterationHasWhatIsLeftAndThenNewPrompts) {
  CarriedSamples carried(0, rows_of_example);
  const Batch first = carried.rows(3 * kSamples);
  EXPECT_EQ(first.all(batch::kUid), (Uids{0, 1, 10, 11, 20, 21}));
  EXPECT_EQ(first.all(rlhf::kRound), std::vector<int32_t>(6, 0));
  carried.take(drawn(first, {0, 10, 11, 20}));
  const Batch second = carried.rows(3 * kSamples);
  EXPECT_EQ(second.all(batch::kUid), (Uids{0, 1, 20, 21, 30, 31}));
  EXPECT_EQ(second.all(rlhf::kRound), (std::vector<int32_t>{1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(second.all(batch::kFinish), (std::vector<int32_t>{1, 0, 1, 0, 0, 0}));
  EXPECT_EQ(second.all(rlhf::kTrainedBefore), std::vector<uint8_t>(6, 0)) << "prompts are trained whole";
  EXPECT_EQ(second.length(batch::kIds.name, 1), 3) << "as far as it was drawn";
  EXPECT_EQ(second.row(batch::kWeightsVersion, 1)[2], 1);
  EXPECT_EQ(second.get(batch::kPromptTokens, 1), 2);
  EXPECT_EQ(second.json(batch::kExample, 2).at("ground_truth"), 2);
  EXPECT_FALSE(second.has(batch::kRoutedExperts.name));
  carried.take(drawn(second, {1, 21, 30, 31}));
  EXPECT_EQ(carried.rows(2 * kSamples).all(batch::kUid), (Uids{40, 41, 50, 51})) << "nothing was left";
}

TEST(CarriedSamples, WithAMinimumTheTrainedOnesAreMarked) {
  CarriedSamples carried(1, rows_of_example);
  carried.take(drawn(carried.rows(2 * kSamples), {0}));
  const Batch next = carried.rows(2 * kSamples);
  EXPECT_EQ(next.all(batch::kUid), (Uids{0, 1, 10, 11}));
  EXPECT_EQ(next.all(rlhf::kTrainedBefore), (std::vector<uint8_t>{1, 0, 0, 0}));
}

TEST(CarriedSamples, ARunThatGoesOnHasTheSameRows) {
  CarriedSamples carried(0, rows_of_example);
  for (const auto& finished : std::vector<std::set<int64_t>>{{0}, {1, 10, 11}}) {
    carried.take(drawn(carried.rows(3 * kSamples), finished));
    base::MemoryState state;
    carried.save(state);
    CarriedSamples again(0, rows_of_example);
    again.take(drawn(again.rows(2 * kSamples), {}));  // what it had is forgotten
    again.load(state);
    EXPECT_EQ(flow::pack(again.rows(3 * kSamples).contiguous()), flow::pack(carried.rows(3 * kSamples).contiguous()));
  }
  CarriedSamples none(0, rows_of_example);
  base::MemoryState state;
  none.save(state);
  carried.load(state);
  EXPECT_EQ(carried.rows(kSamples).all(batch::kUid), (Uids{0, 1}));
}

}  // namespace
}  // namespace collimate::recipe

#include "collimate/rlhf/modules/finished_samples.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/modules/options.h"
#include "collimate/rlhf/rollout/assemble.h"
#include "collimate/rlhf/types/rounds.h"
#include "tests/support/base/error_of.h"

namespace collimate::rlhf {
namespace {

constexpr auto kRunning = static_cast<int32_t>(generate::Finish::kRunning);
constexpr auto kEnded = static_cast<int32_t>(generate::Finish::kEos);

// Samples of prompts of three, each with a finish.
Batch rows_of_three(const std::vector<int32_t>& finishes, const std::vector<uint8_t>& trained) {
  std::vector<int64_t> uids, prompts;
  for (size_t i = 0; i < finishes.size(); ++i) {
    uids.push_back(static_cast<int64_t>(i) + 100);
    prompts.push_back(static_cast<int64_t>(i) / 3);
  }
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set(batch::kPromptUid, prompts);
  rows.set(batch::kFinish, finishes);
  rows.set(kRound, std::vector<int32_t>(finishes.size(), 0));
  rows.set(kTrainedBefore, trained);
  return rows;
}

using RowList = std::vector<int64_t>;

TEST(Rounds, PromptsAreGivenWholeUnlessFewerSamplesAreEnough) {
  const Batch rows = rows_of_three({kEnded, kEnded, kEnded, kEnded, kRunning, kEnded, kRunning, kEnded, kRunning},
                                   std::vector<uint8_t>(9, 0));
  EXPECT_EQ(part_rows(rows, 0).given, (RowList{0, 1, 2}));
  EXPECT_EQ(part_rows(rows, 3).given, (RowList{0, 1, 2}));
  EXPECT_EQ(part_rows(rows, 2).given, (RowList{0, 1, 2, 3, 5}));
  for (const int64_t least : {0, 2, 3}) EXPECT_EQ(part_rows(rows, least).carried, (RowList{3, 4, 5, 6, 7, 8}));
}

// A prompt of which some samples are trained waits for another to finish; the trained ones then stand beside it.
TEST(Rounds, SamplesThatAreTrainedStandBesideLaterOnes) {
  const auto parted = [](int32_t second, int32_t third) {
    return part_rows(rows_of_three({kEnded, second, third}, {1, 1, 0}), 2);
  };
  EXPECT_EQ(parted(kEnded, kRunning).given, RowList{});
  EXPECT_EQ(parted(kEnded, kRunning).carried, (RowList{0, 1, 2}));
  EXPECT_EQ(parted(kEnded, kEnded).given, (RowList{0, 1, 2}));
  EXPECT_EQ(parted(kEnded, kEnded).carried, RowList{});
}

TEST(Rounds, TheNextIterationGetsWhatIsLeft) {
  const Batch rows = rows_of_three({kEnded, kEnded, kRunning, kEnded, kRunning, kRunning}, {0, 1, 0, 0, 0, 0});
  const Batch next = next_round(rows, part_rows(rows, 2));
  EXPECT_EQ(next.all(batch::kUid), (RowList{100, 101, 102, 103, 104, 105}));
  EXPECT_EQ(next.all(kRound), std::vector<int32_t>(6, 1));
  EXPECT_EQ(next.all(kTrainedBefore), (std::vector<uint8_t>{1, 1, 0, 0, 0, 0}));
}

TEST(Rounds, ARoundHasItsLimitAndTheLastOneAllTokens) {
  const std::vector<int64_t> limits = {3, 5, 9};
  EXPECT_EQ(limit_of_round(limits, 0), 3);
  EXPECT_EQ(limit_of_round(limits, 2), 9);
  EXPECT_EQ(limit_of_round(limits, 7), 9);
  const nlohmann::json cut = sampling_of_round({{"max_tokens", 9}, {"min_tokens", 4}, {"top_k", 2}}, 3);
  EXPECT_EQ(cut, (nlohmann::json{{"max_tokens", 3}, {"min_tokens", 3}, {"top_k", 2}}));
  const nlohmann::json shorter = nlohmann::json::object({{"max_tokens", 2}});
  EXPECT_EQ(sampling_of_round(shorter, 3), shorter);
}

TEST(Rounds, ASampleIsTakenUpWhereItWasLeft) {
  Batch rows;
  rows.set(batch::kUid, RowList{8});
  rows.set(batch::kPromptTokens, RowList{2});
  rows.set_ragged(batch::kIds, std::vector<std::vector<int32_t>>{{1, 2, 3}});
  rows.set_ragged(batch::kLogProbs, std::vector<std::vector<float>>{{0, 0, -1.5F}});
  rows.set_ragged(batch::kWeightsVersion, std::vector<std::vector<int64_t>>{{0, 0, 6}});
  rows.set(batch::kFinish, std::vector<int32_t>{kEnded});
  const Completion begun = begun_sample(rows, 0);
  EXPECT_EQ(begun.uid, 8);
  EXPECT_EQ(begun.prompt, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(begun.tokens, std::vector<int32_t>{3});
  EXPECT_EQ(begun.log_probs, std::vector<float>{-1.5F});
  EXPECT_EQ(begun.versions, std::vector<int64_t>{6});
  EXPECT_EQ(begun.finish, kEnded);
}

TEST(Rounds, TheFilterCountsWhatItHoldsBack) {
  const auto filter = finished_samples_module(0);
  const Batch rows = rows_of_three({kEnded, kEnded, kEnded, kEnded, kRunning, kEnded}, std::vector<uint8_t>(6, 0));
  EXPECT_EQ(filter->call("keep", rows, {}).all(batch::kUid), (RowList{100, 101, 102}));
  std::map<std::string, double> counts;
  for (const flow::Metric& metric : filter->metrics()) counts[metric.name] = metric.value;
  EXPECT_EQ(counts,
            (std::map<std::string, double>{
                {"rollout/prompts_begun", 2}, {"rollout/unfinished_samples", 1}, {"rollout/waiting_samples", 2}}));
}

TEST(Rounds, SharesAreOneTogetherAndATokenEach) {
  RolloutOptions options;
  EXPECT_TRUE(options.round_limits().empty());
  options.completion_tokens = 10;
  options.round_shares = {0.25, 0.25, 0.5};
  EXPECT_EQ(options.round_limits(), (std::vector<int64_t>{3, 5, 10}));
  options.round_shares = {0.1, 0.2, 0.3, 0.4};
  EXPECT_EQ(options.round_limits().back(), 10);
  options.round_shares = {0.5, 0.4};
  EXPECT_EQ(base::message_of([&] { options.round_limits(); }),
            "[rollout.round_shares] expected shares that are 1 together, got [0.5,0.4]; try [0.5, 0.5]");
  options.round_shares = {0.5, 0.6};
  EXPECT_NE(base::message_of([&] { options.round_limits(); }), "");
  options.round_shares = {0.02, 0.98};
  EXPECT_EQ(base::message_of([&] { options.round_limits(); }),
            "[rollout.round_shares] expected shares of at least a token each of the 10 of rollout.completion_tokens, "
            "got [0.02,0.98]; try [0.5, 0.5]");
}

}  // namespace
}  // namespace collimate::rlhf

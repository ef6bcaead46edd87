#include "collimate/rlhf/modules/advantages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "tests/support/base/error_of.h"

namespace collimate::rlhf {
namespace {

using generate::Finish;

// One sample of one prompt per reward, a prompt token and a trained one.
Batch samples(const std::vector<float>& rewards, const std::vector<Finish>& finish) {
  Batch rows;
  std::vector<int64_t> uids;
  std::vector<int32_t> ends;
  for (size_t i = 0; i < rewards.size(); ++i) {
    uids.push_back(static_cast<int64_t>(i));
    ends.push_back(static_cast<int32_t>(finish[i % finish.size()]));
  }
  rows.set(batch::kUid, uids);
  rows.set(batch::kPromptUid, std::vector<int64_t>(rewards.size(), 7));
  rows.set(batch::kReward, rewards);
  rows.set(batch::kFinish, ends);
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(rewards.size(), {0, 1}));
  for (const auto& key : {batch::kLogProbs, batch::kReferenceLogProbs, batch::kValues})
    rows.set_ragged(key, std::vector<std::vector<float>>(rewards.size(), {0.F, 0.F}));
  std::vector<std::vector<float>> steps;
  for (const float reward : rewards) steps.push_back({0.F, reward});
  rows.set_ragged(batch::kStepRewards, steps);
  rows.set_ragged(batch::kStep, std::vector<std::vector<int32_t>>(rewards.size(), {-1, 0}));
  return rows;
}

Batch with_advantages(const std::string& name, const nlohmann::json& parameters, const Batch& rows) {
  for (const AdvantageEntry& entry : advantages())
    if (entry.name == name) return advantage_module(entry, parameters)->call("advantages", rows, {});
  return {};
}

TEST(AdvantageModule, OnlyCompletionsCutAtTheirLimitLackTheirEnd) {
  const Batch rows = samples({1, 1, 1}, {Finish::kEos, Finish::kStop, Finish::kLength});
  for (const char* name : {"gae", "rloo", "process"}) {
    const Batch out = with_advantages(name, {{"missing_eos_penalty", 0.5}}, rows);
    EXPECT_EQ(out.all(batch::kReward), (std::vector<float>{1, 1, 0.5F})) << name;
    EXPECT_EQ(out.row(batch::kStepRewards, 2)[1], 0.5F) << name;
  }
}

TEST(AdvantageModule, ReportsTheKlThatTheRewardHas) {
  Batch rows = samples({1, 2}, {Finish::kEos});
  rows.set_ragged(batch::kLogProbs, std::vector<std::vector<float>>{{9.F, -1.F}, {9.F, -2.F}});
  rows.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0.F, -1.5F}, {0.F, -1.F}});
  const auto reported = [&](const nlohmann::json& parameters) {
    for (const AdvantageEntry& entry : advantages()) {
      if (entry.name != "gae") continue;
      const auto module = advantage_module(entry, parameters);
      module->call("advantages", rows, {});
      for (const flow::Metric& metric : module->metrics())
        if (metric.name == "actor/reward_kl_penalty") return metric.value;
    }
    return std::nan("");
  };
  EXPECT_NEAR(reported(nlohmann::json::object()), (0.5 - 1) / 2, 1e-6);
  EXPECT_NEAR(reported({{"kl_estimator", "k3"}}), (std::exp(-0.5) - 0.5 + std::exp(1.0) - 2) / 2, 1e-6);
}

TEST(AdvantageModule, EveryAdvantageCanBeMadeOfShuffledRewards) {
  std::vector<float> rewards(16);
  for (size_t i = 0; i < rewards.size(); ++i) rewards[i] = static_cast<float>(i);
  for (const AdvantageEntry& entry : advantages()) {
    const Batch out = with_advantages(entry.name, {{"shuffle_rewards", true}}, samples(rewards, {Finish::kEos}));
    std::vector<float> shuffled = out.all(batch::kReward);
    EXPECT_NE(shuffled, rewards) << entry.name;
    for (size_t r = 0; r < shuffled.size(); ++r)
      EXPECT_EQ(out.row(batch::kStepRewards, static_cast<int64_t>(r))[1], shuffled[r]) << entry.name;
    std::sort(shuffled.begin(), shuffled.end());
    EXPECT_EQ(shuffled, rewards) << entry.name;
  }
}

TEST(AdvantageModule, ShuffledRewardsKeepTheStepsOfTheirRowAndLoseNothing) {
  Batch rows = samples({3, 4, 3, 4, 3, 4, 3, 4}, {Finish::kEos});
  std::vector<std::vector<int32_t>> step;
  std::vector<std::vector<float>> rewards;
  for (int r = 0; r < 8; ++r) {
    step.push_back(r % 2 == 0 ? std::vector<int32_t>{-1, 0, 0} : std::vector<int32_t>{-1, 0, 1});
    rewards.push_back(r % 2 == 0 ? std::vector<float>{0, 0, 3} : std::vector<float>{0, 1, 3});
  }
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(8, {0, 1, 1}));
  rows.set_ragged(batch::kStep, step);
  rows.set_ragged(batch::kStepRewards, rewards);
  const Batch out = with_advantages("process", {{"shuffle_rewards", true}}, rows);
  int moved = 0;
  for (int64_t r = 0; r < 8; ++r) {
    const auto own = out.row(batch::kStepRewards, r);
    EXPECT_EQ(own[1] + own[2], out.get(batch::kReward, r));
    EXPECT_EQ(out.row(batch::kStep, r)[2], base::at(step, r)[2]);
    EXPECT_EQ(own[1] != 0.F, r % 2 == 1) << "the reward of one step is where it ends";
    moved += out.get(batch::kReward, r) != rows.get(batch::kReward, r) ? 1 : 0;
  }
  EXPECT_GT(moved, 0);
}

TEST(AdvantageModule, ATakenNameAndUnknownRowsAreRefused) {
  AdvantageEntry entry = advantages().front();
  EXPECT_EQ(base::message_of([&] { register_advantage(entry); }),
            "[register_advantage] expected a name that is free, got \"group\" again");
  entry.rows = "sentences";
  EXPECT_EQ(base::message_of([&] { register_advantage(entry); }),
            "[register_advantage] expected rows of the kind groups or values, got \"sentences\"");
}

}  // namespace
}  // namespace collimate::rlhf

#include "collimate/rlhf/modules/advantages.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"

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
  return rows;
}

Batch with_advantages(const std::string& name, const nlohmann::json& parameters, const Batch& rows) {
  for (const AdvantageEntry& entry : advantages())
    if (entry.name == name) return advantage_module(entry, parameters)->call("advantages", rows, {});
  return {};
}

TEST(AdvantageModule, OnlyCompletionsCutAtTheirLimitLackTheirEnd) {
  const Batch rows = samples({1, 1, 1}, {Finish::kEos, Finish::kStop, Finish::kLength});
  for (const char* name : {"gae", "rloo"}) {
    const Batch out = with_advantages(name, {{"missing_eos_penalty", 0.5}}, rows);
    EXPECT_EQ(out.all(batch::kReward), (std::vector<float>{1, 1, 0.5F})) << name;
  }
}

TEST(AdvantageModule, EveryAdvantageCanBeMadeOfShuffledRewards) {
  std::vector<float> rewards(16);
  for (size_t i = 0; i < rewards.size(); ++i) rewards[i] = static_cast<float>(i);
  for (const AdvantageEntry& entry : advantages()) {
    const Batch out = with_advantages(entry.name, {{"shuffle_rewards", true}}, samples(rewards, {Finish::kEos}));
    std::vector<float> shuffled = out.all(batch::kReward);
    EXPECT_NE(shuffled, rewards) << entry.name;
    std::sort(shuffled.begin(), shuffled.end());
    EXPECT_EQ(shuffled, rewards) << entry.name;
  }
}

}  // namespace
}  // namespace collimate::rlhf

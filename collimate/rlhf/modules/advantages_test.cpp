#include "collimate/rlhf/modules/advantages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/service.h"
#include "collimate/rlhf/types/baseline_sample.h"
#include "collimate/rlhf/types/loss.h"
#include "collimate/rlhf/types/reward_parts.h"
#include "collimate/rlhf/types/rounds.h"
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
  std::vector<int32_t> baseline(rewards.size(), 0);
  baseline.back() = 1;
  rows.set(kBaselineSample, baseline);
  std::vector<std::vector<float>> parts;
  for (const float reward : rewards) parts.push_back({reward});
  rows.set_ragged(kRewardParts, parts);
  rows.set_ragged(kRewardWeights, std::vector<std::vector<float>>(rewards.size(), {1.F}));
  return rows;
}

Batch with_advantages(const std::string& name, const nlohmann::json& parameters, const Batch& rows) {
  for (const AdvantageEntry& entry : advantages())
    if (entry.name == name) return AdvantageModule(entry, parameters).call("advantages", rows, {});
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
      AdvantageModule module(entry, parameters);
      module.call("advantages", rows, {});
      for (const flow::Metric& metric : module.metrics())
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
    EXPECT_EQ(shuffled.size() + (entry.greedy_baseline ? 1 : 0), rewards.size()) << entry.name;
    EXPECT_TRUE(std::ranges::includes(rewards, shuffled)) << entry.name;
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

// Samples of which one was trained before (types/rounds.h): the others are compared with it, and it goes no further.
TEST(AdvantageModule, WhatWasTrainedBeforeIsComparedAndLeftOut) {
  const Batch rows = samples({0, 1, 4}, {Finish::kEos});
  Batch in_rounds = rows;
  in_rounds.set(kTrainedBefore, std::vector<uint8_t>{0, 1, 0});
  for (const char* name : {"group", "rloo", "opo"}) {
    const Batch whole = with_advantages(name, nlohmann::json::object(), rows);
    const Batch out = with_advantages(name, {{"token_normalizer", "iteration"}}, in_rounds);
    EXPECT_EQ(out.all(batch::kUid), (std::vector<int64_t>{0, 2})) << name;
    EXPECT_EQ(out.all(kIterationTokens), std::vector<float>(2, 2.F)) << name;
    for (const int64_t r : {0, 1})
      EXPECT_EQ(out.row(batch::kAdvantages, r)[1], whole.row(batch::kAdvantages, 2 * r)[1]);
  }
}

const AdvantageEntry& entry_named(const std::string& name) {
  return *std::ranges::find(advantages(), name, &AdvantageEntry::name);
}

Batch computed(AdvantageModule& module, const Batch& rows, int64_t iteration) {
  flow::CallInfo info;
  info.iteration = iteration;
  return module.call("advantages", rows, info);
}

// By the standard deviation of all rewards so far; an iteration that is computed again counts once.
TEST(AdvantageModule, ARunningScaleCountsEachIterationOnce) {
  AdvantageModule module(entry_named("rloo"), {{"reward_scaling", "running"}});
  const Batch first = samples({0, 2}, {Finish::kEos}), second = samples({5, 1, 3}, {Finish::kEos});
  EXPECT_FLOAT_EQ(computed(module, first, 0).get(batch::kReward, 1), 2 / std::sqrt(2.F));
  const float std_of_five = std::sqrt((2.2F * 2.2F + 0.2F * 0.2F + 2.8F * 2.8F + 1.2F * 1.2F + 0.8F * 0.8F) / 4);
  for (int again = 0; again < 2; ++again)
    EXPECT_FLOAT_EQ(computed(module, second, 1).get(batch::kReward, 0), 5 / std_of_five) << again;
  EXPECT_FLOAT_EQ(computed(module, second, 1).row(batch::kStepRewards, 0)[1], 5 / std_of_five);
}

TEST(AdvantageModule, RunsAgainAnywhereOnlyWithoutAStateOfItsOwn) {
  for (const auto& [parameters, safe] : {std::pair(nlohmann::json::object(), true),
                                         {{{"reward_scaling", "running"}}, false},
                                         {{{"kl_coefficient", 0.1}, {"kl_target", 3.0}}, false}})
    EXPECT_EQ(AdvantageModule(entry_named("rloo"), parameters).functions().at(0).retry_safe, safe) << parameters.dump();
}

TEST(AdvantageModule, EqualRewardsAreNotScaled) {
  AdvantageModule module(entry_named("rloo"), {{"reward_scaling", "running"}});
  EXPECT_EQ(computed(module, samples({3, 3}, {Finish::kEos}), 0).all(batch::kReward), (std::vector<float>{3, 3}));
}

TEST(AdvantageModule, RewardsAreClippedBeforeTheyArePenalised) {
  const Batch out = with_advantages("rloo", {{"reward_clip", 2}, {"missing_eos_penalty", 1}},
                                    samples({7, -7, 1}, {Finish::kLength, Finish::kEos, Finish::kEos}));
  EXPECT_EQ(out.all(batch::kReward), (std::vector<float>{1, -2, 1}));
  EXPECT_EQ(out.row(batch::kStepRewards, 0)[1], 1.F);
}

// Nothing of groups without a difference, of a sample alone, of samples that train nothing; always finite.
TEST(AdvantageModule, EveryAdvantageOfGroupsIsDefinedWhereNothingCanBeCompared) {
  for (const AdvantageEntry& entry : advantages()) {
    for (const std::vector<float>& rewards : {std::vector<float>(4, 0.7F), std::vector<float>{0.7F}}) {
      Batch rows = samples(rewards, {Finish::kEos});
      if (rewards.size() > 1) rows.set(kBaselineSample, std::vector<int32_t>{0, 0, 1, 0});
      const Batch out = AdvantageModule(entry, nlohmann::json::object()).call("advantages", rows, {});
      const bool compared = entry.rows == "groups" && (entry.compares_samples || rewards.size() > 1);
      for (int64_t r = 0; r < out.rows(); ++r) {
        EXPECT_TRUE(std::isfinite(out.row(batch::kAdvantages, r)[1])) << entry.name;
        if (compared) {
          EXPECT_NEAR(out.row(batch::kAdvantages, r)[1], 0.F, 1e-6) << entry.name;
        }
      }
    }
    Batch masked = samples({1, 2, 4}, {Finish::kEos});
    masked.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(3, {0, 0}));
    const Batch out = AdvantageModule(entry, nlohmann::json::object()).call("advantages", masked, {});
    for (const float x : out.all(batch::kAdvantages)) EXPECT_EQ(x, 0.F) << entry.name;
  }
}

TEST(AdvantageModule, EveryColumnThatIsReadIsDeclared) {
  for (const AdvantageEntry& entry : advantages()) {
    AdvantageModule module(entry, {{"kl_coefficient", 0.1}});
    std::vector<std::string> declared;
    const std::vector<graph::FunctionSpec> functions = module.functions();
    for (const graph::Column& column : functions.at(0).needs) declared.push_back(column.name);
    const Batch rows = samples({1, 2, 4}, {Finish::kEos}).select_columns(declared);
    EXPECT_EQ(base::message_of([&] { module.call("advantages", rows, {}); }), "") << entry.name;
  }
}

// A verl user expects the reward itself.
TEST(AdvantageModule, ALoneSampleCanHaveItsReward) {
  for (const AdvantageEntry& entry : advantages()) {
    if (std::ranges::find(entry.options, "lone_samples") == entry.options.end()) continue;
    if (entry.name == "reinforce_plus_plus_baseline") continue;  // whitens: there is nothing else to compare with
    const Batch out = with_advantages(entry.name, {{"lone_samples", "reward"}, {"advantage_epsilon", 0}},
                                      samples({0.7F}, {Finish::kEos}));
    EXPECT_FLOAT_EQ(out.row(batch::kAdvantages, 0)[1], 0.7F) << entry.name;
  }
}

TEST(AdvantageModule, ATargetOfTheKlNeedsACoefficient) {
  EXPECT_EQ(base::message_of([] {
              AdvantageModule(entry_named("group"), {{"kl_target", 0.1}});
            }),
            "[algorithm.kl_coefficient] expected above 0 where kl_target moves it, got 0; try "
            "algorithm.kl_coefficient: 0.05");
}

TEST(Shaping, OverlongCompletionsLoseTheMoreTheLongerTheyAre) {
  EXPECT_EQ(overlong_penalty(80, 100, 20, 1.0), 0.0);
  EXPECT_EQ(overlong_penalty(85, 100, 20, 1.0), 0.25);
  EXPECT_EQ(overlong_penalty(100, 100, 20, 2.0), 2.0);
  EXPECT_EQ(overlong_penalty(100, 100, 0, 2.0), 0.0);
}

TEST(Shaping, TheCoefficientOfTheKlMovesByAFifthAtMost) {
  AlgorithmOptions options;
  options.kl_target = 0.1;
  options.kl_horizon = 1000;
  EXPECT_DOUBLE_EQ(adapted_kl_coefficient(0.05, 0.11, 100, options), 0.05 * (1 + 0.1 * 0.1));
  EXPECT_DOUBLE_EQ(adapted_kl_coefficient(0.05, 5.0, 100, options), 0.05 * 1.02);
  EXPECT_DOUBLE_EQ(adapted_kl_coefficient(0.05, 0.0, 100, options), 0.05 * 0.98);
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

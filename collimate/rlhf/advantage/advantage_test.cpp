#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/gae.h"
#include "collimate/rlhf/advantage/group.h"
#include "tests/support/shared_data.h"

namespace collimate::rlhf {
namespace {

// Rows of one prompt token and `tokens` trainable ones.
Batch rows_of(const std::vector<int64_t>& prompts, const std::vector<float>& rewards, int64_t tokens = 2) {
  Batch rows;
  rows.set(batch::kPromptUid, prompts);
  rows.set(batch::kReward, rewards);
  std::vector<uint8_t> mask(tokens + 1, 1);
  mask[0] = 0;
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(prompts.size(), mask));
  return rows;
}

Batch add(const std::string& name, const Batch& rows, const nlohmann::json& options) {
  AlgorithmOptions section;
  base::apply(options, "algorithm", section);
  return find_advantage("groups", name, section).add(rows, section);
}

Batch group(const Batch& rows, const nlohmann::json& options = nlohmann::json::object()) {
  return add("group", rows, options);
}

// `collimate help advantages` says them.
TEST(Advantages, EachIsToldInASentence) {
  for (const AdvantageEntry& entry : advantages()) {
    EXPECT_GT(entry.about.size(), 20U) << entry.name;
    EXPECT_TRUE(entry.about.ends_with('.')) << entry.name;
  }
}

TEST(GroupAdvantages, AreStandardScoresInsideEachGroup) {
  const Batch out = group(rows_of({7, 9, 7, 9}, {1, 5, 3, 5}));
  const float expected = 1.0F / (std::sqrt(2.0F) + 1e-4F);
  EXPECT_FLOAT_EQ(out.row(batch::kAdvantages, 0)[1], -expected);
  EXPECT_FLOAT_EQ(out.row(batch::kAdvantages, 2)[2], expected);
  EXPECT_EQ(out.row(batch::kAdvantages, 0)[0], 0.F);
  EXPECT_EQ(out.row(batch::kAdvantages, 1)[1], 0.F);
}

TEST(GroupAdvantages, DependOnNeitherOrderNorOtherGroups) {
  const Batch both = group(rows_of({7, 9, 7, 9}, {1, 5, 3, 6}));
  const Batch alone = group(rows_of({7, 7}, {3, 1}));
  EXPECT_EQ(both.row(batch::kAdvantages, 0)[1], alone.row(batch::kAdvantages, 1)[1]);
}

TEST(GroupAdvantages, CanBeScaledByTheBatchOrNotAtAll) {
  const Batch rows = rows_of({7, 7, 9, 9}, {1, 3, 5, 11});
  EXPECT_FLOAT_EQ(group(rows, {{"scale_rewards", "none"}}).row(batch::kAdvantages, 3)[1], 3.F);
  const float batch_std = std::sqrt((16.F + 4 + 0 + 36) / 3);
  EXPECT_FLOAT_EQ(group(rows, {{"scale_rewards", "batch"}}).row(batch::kAdvantages, 3)[1], 3.F / (batch_std + 1e-4F));
}

TEST(LeaveOneOut, ComparesWithTheOtherSamples) {
  const Batch out = add("group", rows_of({7, 7, 7, 9}, {1, 2, 6, 5}), {{"advantage", "rloo"}});
  EXPECT_FLOAT_EQ(out.row(batch::kAdvantages, 2)[1], 6 - 1.5F);
  EXPECT_FLOAT_EQ(out.row(batch::kAdvantages, 3)[1], 0.F);
}

// Rows of one prompt (uid 7), one prompt token; `steps` gives the number of tokens and the reward of each step.
Batch rows_of_steps(const std::vector<std::vector<std::pair<int, float>>>& rows) {
  Batch out;
  std::vector<std::vector<int32_t>> step;
  std::vector<std::vector<float>> rewards;
  std::vector<std::vector<uint8_t>> trainable;
  std::vector<float> whole;
  for (const auto& row : rows) {
    step.push_back({-1});
    rewards.push_back({0.F});
    whole.push_back(0.F);
    for (size_t j = 0; j < row.size(); ++j) {
      step.back().insert(step.back().end(), row[j].first, static_cast<int32_t>(j));
      rewards.back().resize(step.back().size(), 0.F);
      rewards.back().back() = row[j].second;
      whole.back() += row[j].second;
    }
    trainable.emplace_back(step.back().size(), 1)[0] = 0;
  }
  out.set(batch::kPromptUid, std::vector<int64_t>(rows.size(), 7));
  out.set(batch::kReward, whole);
  out.set_ragged(batch::kStep, step);
  out.set_ragged(batch::kStepRewards, rewards);
  out.set_ragged(batch::kTrainable, trainable);
  return out;
}

TEST(ProcessAdvantages, OneStepIsGroup) {
  const Batch rows = rows_of_steps({{{2, 1.F}}, {{3, 5.F}}, {{1, 2.F}}});
  for (const char* scale : {"group", "batch", "none"}) {
    const Batch process = add("process", rows, {{"advantage", "process"}, {"scale_rewards", scale}, {"gamma", 0.3}});
    const Batch outcome = group(rows, {{"scale_rewards", scale}});
    EXPECT_EQ(process.all(batch::kAdvantages), outcome.all(batch::kAdvantages)) << scale;
  }
  Batch several = rows_of_steps({{{2, 0.1F}}, {{3, 5.7F}}, {{1, 2.3F}}, {{1, -0.9F}}});
  several.set(batch::kPromptUid, std::vector<int64_t>{9, 7, 9, 7});
  const nlohmann::json batch_std = {{"scale_rewards", "batch"}};
  EXPECT_EQ(add("process", several, {{"advantage", "process"}, {"scale_rewards", "batch"}}).all(batch::kAdvantages),
            group(several, batch_std).all(batch::kAdvantages));
}

TEST(ProcessAdvantages, AStepThatNobodyElseReachedIsZeroWithoutEpsilonToo) {
  const Batch out = add("process", rows_of_steps({{{1, 1.F}, {1, 2.F}}, {{1, 3.F}}}),
                        {{"advantage", "process"}, {"advantage_epsilon", 0}});
  EXPECT_EQ(out.row(batch::kAdvantages, 0)[2], 0.F);
  EXPECT_TRUE(std::isfinite(out.row(batch::kAdvantages, 0)[1]));
}

TEST(ProcessAdvantages, CompareReturnsFromTheSameStepOn) {
  const Batch rows = rows_of_steps({{{2, 1.F}, {1, 3.F}, {1, 8.F}}, {{1, 2.F}, {2, 1.F}}, {{1, 0.F}}});
  const Batch whole = add("process", rows, {{"advantage", "process"}, {"scale_rewards", "none"}});
  // Returns 12, 3, 0 from step 0 and 11, 1 from step 1; nobody else has a step 2.
  EXPECT_EQ(whole.all(batch::kAdvantages), (std::vector<float>{0, 7, 7, 5, 0, 0, -2, -5, -5, 0, -5}));
  const Batch myopic = add("process", rows, {{"advantage", "process"}, {"scale_rewards", "none"}, {"gamma", 0}});
  EXPECT_EQ(myopic.all(batch::kAdvantages), (std::vector<float>{0, 0, 0, 1, 0, 0, 1, -1, -1, 0, -1}));
  const Batch half = add("process", rows, {{"advantage", "process"}, {"scale_rewards", "none"}, {"gamma", 0.5}});
  EXPECT_FLOAT_EQ(half.row(batch::kAdvantages, 0)[1], 4.5F - 7.F / 3);  // returns 4.5, 2.5, 0
  // Standard scores: 11 and 1 have a std of √50.
  EXPECT_FLOAT_EQ(add("process", rows, {{"advantage", "process"}}).row(batch::kAdvantages, 0)[3],
                  5.F / (std::sqrt(50.F) + 1e-4F));
}

TEST(ProcessAdvantages, NanIsRefused) {
  EXPECT_THROW(add("process", rows_of_steps({{{1, std::nanf("")}}}), {{"advantage", "process"}}), base::InputError);
}

TEST(AdvantageList, RefusesOneThatReadsSomethingElse) {
  AlgorithmOptions options;
  options.advantage = "gae";
  EXPECT_THROW(find_advantage("groups", "group", options), base::InputError);
  EXPECT_EQ(find_advantage("values", "gae", options).name, "gae");
}

TEST(GroupAdvantages, GroupOfOneIsZeroAndNanIsRefused) {
  EXPECT_EQ(group(rows_of({7}, {3})).row(batch::kAdvantages, 0)[1], 0.F);
  EXPECT_THROW(group(rows_of({7, 7}, {3, std::nanf("")}), {}), base::InputError);
  EXPECT_THROW(group(rows_of({7, 7}, {3, 4}), {{"scale_rewards", "max"}}), base::InputError);
}

std::vector<float> masked(const nlohmann::json& row, const nlohmann::json& mask) {
  std::vector<float> out;
  for (size_t i = 0; i < row.size(); ++i)
    if (mask[i].get<bool>()) out.push_back(row[i].get<float>());
  return out;
}

// Six rows of up to 12 tokens through our batch form, against plain torch with TRL's functions.
TEST(GaeGolden, EqualsPpoFixedArrays) {
  const std::string path = test::shared_path("goldens/ppo_fixed_arrays.json");
  if (path.empty()) GTEST_SKIP() << "no shared goldens beside the repository";
  const nlohmann::json golden = nlohmann::json::parse(std::ifstream(path));
  const nlohmann::json& in = golden["inputs"];
  std::vector<std::vector<float>> log_probs, reference, values;
  std::vector<std::vector<uint8_t>> trainable;
  for (size_t r = 0; r < in["mask"].size(); ++r) {
    log_probs.push_back(masked(in["old_logprobs"][r], in["mask"][r]));
    reference.push_back(masked(in["ref_logprobs"][r], in["mask"][r]));
    values.push_back(masked(in["values"][r], in["mask"][r]));
    trainable.emplace_back(values.back().size(), 1);
  }
  Batch rows;
  rows.set(batch::kReward, in["score"].get<std::vector<float>>());
  rows.set_ragged(batch::kTrainable, trainable);
  rows.set_ragged(batch::kLogProbs, log_probs);
  rows.set_ragged(batch::kReferenceLogProbs, reference);
  rows.set_ragged(batch::kValues, values);
  for (const nlohmann::json& c : golden["cases"]) {
    AlgorithmOptions options;
    options.gamma = c["gamma"].get<double>();
    options.lambda = c["lam"].get<double>();
    options.kl_coefficient = c["kl_coef"].get<double>();
    const Batch out = gae_advantages(rows, options);
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const auto advantages = masked(c["advantages_whitened"][r], in["mask"][r]);
      const auto returns = masked(c["returns"][r], in["mask"][r]);
      for (size_t t = 0; t < advantages.size(); ++t) {
        EXPECT_NEAR(out.row(batch::kAdvantages, r)[t], advantages[t], 2e-6);
        EXPECT_NEAR(out.row(batch::kReturns, r)[t], returns[t], 2e-6);
      }
    }
  }
}

TEST(Gae, OneStepByHand) {
  const std::vector<float> rewards = {1.F, 2.F};
  const std::vector<float> values = {0.5F, 0.25F};
  const GaeRow row = gae(rewards, values, 0.9, 0.5);
  const float last = 2.F - 0.25F;
  EXPECT_FLOAT_EQ(row.advantages[1], last);
  EXPECT_FLOAT_EQ(row.advantages[0], 1.F + 0.9F * 0.25F - 0.5F + 0.45F * last);
  EXPECT_FLOAT_EQ(row.returns[0], row.advantages[0] + 0.5F);
}

TEST(TokenKl, TheEstimatorsByHand) {
  const std::vector<float> log_probs = {-1.F, -2.F, -3.F}, reference = {-1.5F, -1.F, -3.F};
  EXPECT_EQ(token_kl(log_probs, reference, "k1"), (std::vector<float>{0.5F, -1.F, 0.F}));
  const std::vector<float> k3 = token_kl(log_probs, reference, "k3");
  EXPECT_NEAR(k3[0], std::exp(-0.5) - 1 + 0.5, 1e-6);
  EXPECT_NEAR(k3[1], std::exp(1.0) - 1 - 1, 1e-6);
  EXPECT_EQ(k3[2], 0.F);
}

TEST(Gae, TheKlInTheRewardIsOfTheEstimatorThatIsSet) {
  Batch rows = rows_of({7}, {2.F});
  rows.set_ragged(batch::kLogProbs, std::vector<std::vector<float>>{{0.F, -1.F, -2.F}});
  rows.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0.F, -1.5F, -1.F}});
  rows.set_ragged(batch::kValues, std::vector<std::vector<float>>{{0.F, 0.F, 0.F}});
  const auto returns = [&](nlohmann::json set) {
    set.update({{"kl_coefficient", 0.1}, {"gamma", 0.0}});
    AlgorithmOptions options;
    base::apply(set, "algorithm", options);
    return gae_advantages(rows, options).all(batch::kReturns);
  };
  const auto k1 = returns(nlohmann::json::object()), k3 = returns({{"kl_estimator", "k3"}});
  EXPECT_FLOAT_EQ(k1[1], -0.05F);
  EXPECT_FLOAT_EQ(k1[2], 2.1F);
  EXPECT_NEAR(k3[1], -0.1 * (std::exp(-0.5) - 0.5), 1e-6);
  EXPECT_NEAR(k3[2], 2 - 0.1 * (std::exp(1.0) - 2), 1e-6);
  EXPECT_FLOAT_EQ(returns({{"kl_estimator", "k2"}})[1], -0.1F * 0.125F);
  EXPECT_THROW(returns({{"kl_estimator", "k4"}}), base::InputError);
}

}  // namespace
}  // namespace collimate::rlhf

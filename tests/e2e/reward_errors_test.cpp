// GCC 12 sees an overlap in std::string's insert where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <regex>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"
#include "tests/support/fault_control.h"

namespace collimate::test {
namespace {

constexpr size_t kRows = 16;  // of an iteration

using Samples = std::map<int64_t, nlohmann::json>;  // lines of a file of samples by uid

// A reward in Python, 1 + length / 8, which does `how` where `fails`: of prompt p and completion c.
struct PythonReward {
  std::string fails = "False";
  std::string how = "pass";
  std::string options = "";  // beside the file's name

  std::string text() const {
    return "import time\n"
           "def score(prompts, completions, **columns):\n"
           "    values = []\n"
           "    for p, c in zip(prompts, completions):\n"
           "        if " +
           fails + ":\n            " + how +
           "\n            continue\n"
           "        values.append(1 + len(c) / 8)\n"
           "    return values\n";
  }
};

double reward_sum(const Samples& samples) {
  double sum = 0;
  for (const auto& [uid, sample] : samples) sum += sample.at("reward").get<double>();
  return sum;
}

void expect_finite_metrics(const Metrics& metrics) {
  for (const nlohmann::json& line : metrics)
    for (const auto& [name, value] : line.items())
      EXPECT_TRUE(value.is_number() && std::isfinite(value.get<double>())) << name << " is " << value.dump();
}

// An iteration trained `samples`, all of them with a reward of their own: the others were counted and nothing else.
void expect_trained_alone(const nlohmann::json& line, const Samples& samples) {
  const auto rows = static_cast<double>(samples.size());
  EXPECT_EQ(line.at("reward/errors").get<double>(), kRows - rows);
  EXPECT_NEAR(line.at("critic/rewards/mean").get<double>(), reward_sum(samples) / rows, 1e-6);
  EXPECT_NEAR(line.at("rewards/score/mean").get<double>(), reward_sum(samples) / rows, 1e-6);
  EXPECT_GE(line.at("critic/rewards/min").get<double>(), 1.0);
  EXPECT_NEAR(
      line.at("mismatch/tokens_compared").get<double>() + line.at("mismatch/tokens_other_version").get<double>(),
      rows * line.at("response_length/mean").get<double>(), 1e-6);
}

class RewardErrors : public testing::Test {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }

  std::string reward_list(const std::string& name, const PythonReward& reward) {
    write_text(scratch_ / (name + ".py"), reward.text());
    return "[{python: \"" + (scratch_ / (name + ".py")) + ":score\"" + reward.options + "}]";
  }
  Metrics train(const std::string& name, const PythonReward& reward, std::vector<std::string> sets = {},
                const std::string& recipe = "grpo") {
    sets.push_back("reward=" + reward_list(name, reward));
    const base::LogFile log(scratch_ / (name + ".log"));
    std::optional<base::Reparsing> reparsing;
    if (reparse_) reparsing.emplace();
    train_text(small_config(recipe, scratch_.path()), scratch_ / name, sets);
    const Metrics metrics = metrics_of(scratch_ / name);
    expect_finite_metrics(metrics);
    return metrics;
  }

  Samples samples(const std::string& name, const std::string& file) const {
    Samples out;
    for (const std::string& text : lines_of(scratch_ / (name + "/samples/" + file + ".jsonl"))) {
      const auto line = nlohmann::json::parse(text);
      out[line.at("uid").get<int64_t>()] = line;
    }
    return out;
  }
  Samples step(const std::string& name, size_t number) const {
    return samples(name, fmt::format("step-{:06}", number));
  }
  // All samples of the first iteration: every run has the same ones, whatever its reward.
  Samples first_samples() {
    train("whole", {}, {"run.iterations=1"});
    const Samples all = step("whole", 1);
    EXPECT_EQ(all.size(), kRows);
    return all;
  }

  // Warnings in the log of a run, without the time. Without the one that a call was asked again one by one: it is there
  // when the samples that failed came with others, and without those ahead of the first iteration.
  std::vector<std::string> warnings(const std::string& name) const {
    static const std::regex head("^[0-9:.]+ warning ");
    std::vector<std::string> out;
    for (const std::string& line : lines_of(scratch_ / (name + ".log")))
      if (std::regex_search(line, head) && line.find(" warning iteration ") != std::string::npos)
        out.push_back(std::regex_replace(line, head, ""));
    return out;
  }

  Scratch scratch_{"reward-errors"};
  bool reparse_ = false;
};

// One way in which a reward fails: on completions that are empty or begin with one of `digits`.
struct Fault {
  const char* name;
  const char* digits;
  const char* how;
  const char* options;
  const char* reason;  // as the warning has it
  int iterations;

  PythonReward reward(const std::string& on_error) const {
    return {fmt::format("c[:1] in '{}'", digits), how, fmt::format("{}, on_error: {}", options, on_error)};
  }
  bool hits(const nlohmann::json& sample) const {
    const std::string completion = sample.at("completion");
    return completion.empty() || std::string(digits).find(completion[0]) != std::string::npos;
  }
};

// The killed call of a sample is waited for half a second each: one iteration, and fewer such samples.
constexpr const char* kNoAnswer = "no answer within 0.5 s";
constexpr Fault kFaults[] = {
    {"Raises", "01234", "raise ValueError('no answer')", "", "ValueError: no answer", 3},
    {"IsLargerThanAFloat", "01234", "values.append(1e300)", "",
     "reward is 1e+300: at weight 1 the sample's sum is beyond the range of float", 1},
    {"IsNone", "01234", "values.append(None)", "", "no reward judged the sample", 3},
    {"IsNan", "01234", "values.append(float('nan'))", "", "the function returned nan", 3},
    {"Hangs", "01", "time.sleep(1000)", ", timeout_seconds: 0.5, batch_samples: 1", kNoAnswer, 1}};

class RewardFaults : public RewardErrors, public testing::WithParamInterface<Fault> {
 protected:
  Metrics train_with_fault(const std::string& name, const std::string& on_error) {
    return train(name, GetParam().reward(on_error), {fmt::format("run.iterations={}", GetParam().iterations)});
  }
  std::string warning(size_t step, const nlohmann::json& line, const std::string& effect) const {
    return fmt::format("iteration {}: failed rewards: {}; the first: [reward score] {}; {}", step,
                       line.at("reward/errors").get<double>(), GetParam().reason, effect);
  }
};

TEST_P(RewardFaults, DropThoseSamplesAlone) {
  Samples expected = first_samples();
  std::erase_if(expected, [](const auto& item) { return GetParam().hits(item.second); });
  ASSERT_TRUE(!expected.empty() && expected.size() < kRows) << expected.size() << " samples do not fail: another seed";
  const Metrics metrics = train_with_fault("drop", "drop");
  EXPECT_EQ(step("drop", 1), expected);
  ASSERT_EQ(metrics.size(), static_cast<size_t>(GetParam().iterations));
  std::vector<std::string> shown;
  for (size_t number = 1; number <= metrics.size(); ++number) {
    const Samples trained = step("drop", number);
    for (const auto& [uid, sample] : trained) EXPECT_FALSE(GetParam().hits(sample)) << sample.dump();
    expect_trained_alone(metrics[number - 1], trained);
    if (trained.size() < kRows) shown.push_back(warning(number, metrics[number - 1], "dropped"));
  }
  EXPECT_EQ(warnings("drop"), shown);
}

TEST_P(RewardFaults, GiveThoseSamplesTheValue) {
  Samples expected = first_samples();
  double failed = 0, judged = 0;
  for (auto& [uid, sample] : expected) {
    const bool hit = GetParam().hits(sample);
    (hit ? failed : judged) += hit ? 1.0 : sample.at("reward").get<double>();
    if (hit) sample["reward"] = -3.0;
  }
  const Metrics metrics = train_with_fault("value", "-3");
  EXPECT_EQ(step("value", 1), expected);
  EXPECT_EQ(metrics[0].at("reward/errors").get<double>(), failed);
  EXPECT_EQ(metrics[0].at("critic/rewards/min").get<double>(), -3.0);
  EXPECT_NEAR(metrics[0].at("critic/rewards/mean").get<double>(), reward_sum(expected) / kRows, 1e-6);
  EXPECT_NEAR(metrics[0].at("rewards/score/mean").get<double>(), judged / (kRows - failed), 1e-6);
  EXPECT_EQ(warnings("value").at(0), warning(1, metrics[0], "given -3"));
}

INSTANTIATE_TEST_SUITE_P(Python, RewardFaults, testing::ValuesIn(kFaults),
                         [](const auto& made) { return std::string(made.param.name); });

PythonReward failing(const std::string& where) { return {where, "raise ValueError('no answer')", ", on_error: drop"}; }

// The reference scores the dropped rows' completions meanwhile.
TEST_F(RewardErrors, AGroupWithoutRewardsLeavesTheOthers) {
  Samples expected = first_samples();
  const std::string prompt = expected.begin()->second.at("prompt");
  std::erase_if(expected, [&](const auto& item) { return item.second.at("prompt") == prompt; });
  ASSERT_EQ(expected.size(), 12U);
  for (const std::string recipe : {"grpo", "ppo"}) {
    reparse_ = !reparse_;
    const std::vector<std::string> sets = {recipe == "grpo" ? "algorithm.beta=0.04" : "algorithm.kl_coefficient=0.05"};
    const Metrics metrics = train(recipe, failing("p == '" + prompt + "'"), sets, recipe);
    ASSERT_EQ(metrics.size(), 3U) << recipe;
    EXPECT_EQ(step(recipe, 1), expected) << recipe;
    for (size_t number = 1; number <= 3; ++number) expect_trained_alone(metrics[number - 1], step(recipe, number));
    EXPECT_GT(metrics[0].at("actor/grad_norm").get<double>(), 0.0) << recipe;
  }
}

// With messages reparsed, a call's answer of no rows still says that they were dropped.
TEST_F(RewardErrors, AnIterationWithoutRewardsStopsTheRunAndSaysWhy) {
  train("whole", {}, {"run.iterations=2"});
  std::string prompts;
  for (const auto& [uid, sample] : step("whole", 2))
    prompts += fmt::format("'{}', ", sample.at("prompt").get<std::string>());
  for (const std::string name : {"as-they-are", "reparsed"}) {
    reparse_ = name == "reparsed";
    const std::string error = base::message_of<base::RunError>([&] { train(name, failing("p in [" + prompts + "]")); });
    EXPECT_EQ(error,
              "[iteration 2] expected rows for advantages, got none: all 16 were dropped; [reward score] "
              "ValueError: no answer; dropped");
    const Metrics metrics = metrics_of(scratch_ / name);
    ASSERT_EQ(metrics.size(), 1U);
    expect_finite_metrics(metrics);
    EXPECT_EQ(step(name, 1), step("whole", 1));
  }
}

TEST_F(RewardErrors, HeldOutSamplesWithoutARewardAreCountedAndLeftOut) {
  std::string prompts;
  for (size_t i = 0; i < 3; ++i) {
    const auto problem = nlohmann::json::parse(lines_of(scratch_ / "held_out.jsonl").at(i));
    prompts += fmt::format("'{}', ", problem.at("prompt").get<std::string>());
  }
  const Metrics metrics = train("judge", {},
                                {"data.eval=" + (scratch_ / "held_out.jsonl"), "run.iterations=1",
                                 "evaluation.reward=" + reward_list("some", failing("p in [" + prompts + "]"))});
  ASSERT_EQ(metrics.size(), 2U);
  std::vector<std::string> shown;
  for (size_t number = 0; number < 2; ++number) {
    const Samples judged = samples("judge", fmt::format("eval-{:06}", number));
    ASSERT_EQ(judged.size(), 5U);
    EXPECT_EQ(metrics[number].at("val/reward/errors"), 3.0);
    EXPECT_NEAR(metrics[number].at("val/reward/mean").get<double>(), reward_sum(judged) / 5, 1e-6);
    shown.push_back(
        fmt::format("iteration {}, held-out: failed rewards: 3; the first: [reward score] "
                    "ValueError: no answer; dropped",
                    number));
  }
  EXPECT_EQ(metrics[1].at("reward/errors"), 0.0);
  EXPECT_EQ(warnings("judge"), shown);
}

TEST_F(RewardErrors, AnEvaluationWithoutRewardsMeasuresNothingAndTheRunGoesOn) {
  const Metrics metrics = train("judge", {},
                                {"data.eval=" + (scratch_ / "held_out.jsonl"), "run.iterations=1",
                                 "evaluation.reward=" + reward_list("none", failing("True"))});
  ASSERT_EQ(metrics.size(), 2U);
  for (const nlohmann::json& line : metrics) {
    EXPECT_EQ(line.at("val/reward/errors"), 8.0);
    EXPECT_FALSE(line.contains("val/reward/mean") || line.contains("val/accuracy")) << line.dump();
  }
  EXPECT_EQ(step("judge", 1).size(), kRows);
  ASSERT_EQ(warnings("judge").size(), 4U);
  EXPECT_EQ(warnings("judge")[1], "iteration 0, held-out: every sample was dropped: nothing is measured");
}

}  // namespace
}  // namespace collimate::test

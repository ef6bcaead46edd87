#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/near_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

// Samples that are drawn over several iterations (rollout.round_shares): which tokens an iteration draws follows from
// the samples and not from the clock.
namespace collimate::test {
namespace {

constexpr int kRoundIterations = 6;
constexpr int kRoundTokens = 12;  // of a whole completion

class Rounds : public NearRuns {
 protected:
  // So many that some prompts have all of their samples after the first round, and others have not.
  static std::vector<std::string> sizes() {
    return {"rollout.prompts_per_iteration=16", "rollout.samples_per_prompt=2",
            "rollout.completion_tokens=" + std::to_string(kRoundTokens),
            "run.iterations=" + std::to_string(kRoundIterations), "run.save_every=1"};
  }
  static std::vector<std::string> in_rounds(const std::vector<std::string>& more = {}) {
    return with(with(sizes(), {"rollout.round_shares=[0.5, 0.5]"}), more);
  }
  // The lines of samples/ of an iteration; none where it trained nothing.
  std::vector<nlohmann::json> samples_of(const std::string& name, int iteration) const {
    const std::string file = fmt::format("{}/samples/step-{:06}.jsonl", directory(name), iteration);
    std::vector<nlohmann::json> samples;
    if (!fs::exists(file)) return samples;
    for (const std::string& line : lines_of(file)) samples.push_back(nlohmann::json::parse(line));
    return samples;
  }
  // All samples of a run by uid, each of which must be trained once.
  std::map<int64_t, nlohmann::json> all_samples(const std::string& name, int iterations = kRoundIterations) const {
    std::map<int64_t, nlohmann::json> all;
    for (int i = 1; i <= iterations; ++i)
      for (const nlohmann::json& sample : samples_of(name, i))
        EXPECT_TRUE(all.emplace(sample.at("uid").get<int64_t>(), sample).second) << name << " " << sample;
    return all;
  }
  static double metric(const nlohmann::json& line, const std::string& name) { return line.value(name, 0.0); }
  // The samples that are carried, as the last checkpoint has them.
  std::map<std::string, std::string> carried_state(const std::string& name) const {
    std::map<std::string, std::string> files;
    const std::string state = fmt::format("{}/checkpoints/step-{:06}/state-1", directory(name), kRoundIterations);
    for (const auto& entry : fs::recursive_directory_iterator(state))
      if (entry.is_regular_file()) files[entry.path().string().substr(state.size())] = read_text(entry.path());
    EXPECT_FALSE(files.empty());
    return files;
  }
  void expect_equal_runs(const std::string& one, const std::string& other) {
    EXPECT_TRUE(model_bytes(directory(one)) == model_bytes(directory(other))) << other;
    EXPECT_EQ(without_cache_counts(lasting_metrics(directory(one))),
              without_cache_counts(lasting_metrics(directory(other))))
        << other;
    EXPECT_TRUE(state_of(directory(one), "policy_trainer", kRoundIterations) ==
                state_of(directory(other), "policy_trainer", kRoundIterations))
        << other;
    EXPECT_TRUE(carried_state(one) == carried_state(other)) << other;
    for (int i = 1; i <= kRoundIterations; ++i)
      EXPECT_EQ(samples_of(one, i), samples_of(other, i)) << other << " " << i;
  }
  host::CommandResult command(const std::string& name, const std::vector<std::string>& sets,
                              const Environment& environment = {}) {
    write_text(directory(name) + ".yaml", small_config("grpo", scratch_.path()));
    std::vector<std::string> words = {"train", directory(name) + ".yaml", "--output", directory(name)};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run_collimate(words, environment);
  }
};

// Weights that do not change draw the same tokens, in however many iterations.
TEST_F(Rounds, SamplesAreThoseThatAreDrawnInOneGo) {
  const std::vector<std::string> still = {"train.learning_rate=0"};
  train("whole", "grpo", with(sizes(), {"train.learning_rate=0", "run.iterations=4"}));
  train("parts", "grpo", in_rounds(still));
  train("thirds", "grpo", with(in_rounds(still), {"rollout.round_shares=[0.2, 0.3, 0.5]"}));
  const auto whole = all_samples("whole", 4);
  for (const char* name : {"parts", "thirds"}) {
    const auto parts = all_samples(name);
    EXPECT_GE(parts.size(), 16U) << name;
    int64_t compared = 0;
    for (const auto& [uid, sample] : parts) {
      const auto same = whole.find(uid);
      if (same == whole.end()) continue;  // a later prompt than those of four iterations
      for (const char* of : {"prompt", "completion", "finish", "reward"})
        EXPECT_EQ(sample.at(of), same->second.at(of)) << name << " " << uid;
      ++compared;
    }
    EXPECT_GE(compared, 16) << name;
  }
}

// A token has the version of the weights that drew it, by which it is compared with training or counted. The samples
// of a prompt are trained together.
TEST_F(Rounds, TokensKeepTheirVersionsAndPromptsStayWhole) {
  train("rounds", "grpo", in_rounds());
  const Metrics lines = metrics_of(directory("rounds"));
  ASSERT_EQ(lines.size(), static_cast<size_t>(kRoundIterations));
  double older = 0, compared = 0;
  int64_t mixed = 0;
  for (int i = 1; i <= kRoundIterations; ++i) {
    const nlohmann::json& line = lines[static_cast<size_t>(i) - 1];
    const auto samples = samples_of("rounds", i);
    std::map<std::string, int> by_prompt;
    for (const nlohmann::json& sample : samples) {
      ++by_prompt[sample.at("prompt").get<std::string>()];
      const nlohmann::json& version = sample.at("weights_version");
      if (!version.is_array()) continue;
      EXPECT_LT(version[0], version[1]);
      ++mixed;
    }
    for (const auto& [prompt, count] : by_prompt) EXPECT_EQ(count % 2, 0) << i << " " << prompt;
    EXPECT_EQ(metric(line, "mismatch/logprob_abs_max"), 0) << i;
    const double tokens = std::round(static_cast<double>(samples.size()) * metric(line, "response_length/mean"));
    EXPECT_EQ(metric(line, "mismatch/tokens_compared") + metric(line, "mismatch/tokens_other_version"), tokens) << i;
    EXPECT_LE(metric(line, "response_length/max"), kRoundTokens);
    older += metric(line, "mismatch/tokens_other_version");
    compared += metric(line, "mismatch/tokens_compared");
  }
  EXPECT_GT(mixed, 0);
  EXPECT_GT(older, 0);
  EXPECT_GT(compared, 0);
  EXPECT_EQ(metric(lines[0], "rollout/prompts_begun"), 16);
  EXPECT_LT(metric(lines[1], "rollout/prompts_begun"), 16);
  EXPECT_GT(metric(lines[0], "rollout/unfinished_samples"), 0);
}

// With a round of one token hardly a sample is over, and no prompt: the run goes on, and its second round trains.
TEST_F(Rounds, AnIterationWithoutFinishedPromptsMakesNoUpdate) {
  train("empty", "grpo",
        in_rounds(
            {"rollout.round_shares=[0.1, 0.9]", "rollout.prompts_per_iteration=2", "rollout.samples_per_prompt=8"}));
  const Metrics lines = metrics_of(directory("empty"));
  ASSERT_EQ(lines.size(), static_cast<size_t>(kRoundIterations));
  EXPECT_TRUE(samples_of("empty", 1).empty());
  EXPECT_FALSE(lines[0].contains("actor/loss"));
  EXPECT_EQ(samples_of("empty", 2).size(), 16U);
  EXPECT_TRUE(lines[1].contains("actor/loss"));
  EXPECT_EQ(metric(lines[1], "rollout/prompts_begun"), 0);
  EXPECT_EQ(metric(lines[1], "staleness/max"), 0) << "both rounds had the first weights";
}

// Fewer samples than a prompt's four are enough: they are trained as they finish, each once.
TEST_F(Rounds, AMinimumOfSamplesIsTrainedAheadOfTheOthers) {
  train("some", "grpo", in_rounds({"rollout.round_min_samples=2", "rollout.samples_per_prompt=4"}));
  all_samples("some");                            // each once
  std::map<std::string, std::vector<int>> parts;  // by prompt: how many samples were trained in an iteration
  for (int i = 1; i <= kRoundIterations; ++i) {
    std::map<std::string, int> here;
    for (const nlohmann::json& sample : samples_of("some", i)) ++here[sample.at("prompt").get<std::string>()];
    for (const auto& [prompt, count] : here) parts[prompt].push_back(count);
  }
  int64_t divided = 0;
  for (const auto& [prompt, counts] : parts) {
    if (counts.front() < 4) {
      EXPECT_GE(counts.front(), 2) << prompt;
      divided += counts.size() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(divided, 0);
}

TEST_F(Rounds, ProcessesDelaysAndReplicasChangeNoSample) {
  train("threads", "grpo", in_rounds());
  {
    const WatchedMessages slow(1, 0.002);
    train("slow", "grpo", in_rounds());
  }
  train_apart("processes", "grpo", in_rounds());
  for (const char* other : {"slow", "processes"}) expect_equal_runs("threads", other);
  const std::vector<std::string> still = {"train.learning_rate=0"};
  train("one", "grpo", in_rounds(still));
  train("two", "grpo", with(in_rounds(still), {"devices=2"}));
  const auto completions = [&](const std::string& name, int iteration) {
    std::map<int64_t, std::string> found;
    for (const nlohmann::json& sample : samples_of(name, iteration))
      found[sample.at("uid").get<int64_t>()] = sample.at("completion").get<std::string>();
    return found;
  };
  for (int i = 1; i <= kRoundIterations; ++i) EXPECT_EQ(completions("one", i), completions("two", i)) << i;
}

TEST_F(Rounds, ARunThatIsKilledGoesOnWithTheSameBits) {
  for (const int least : {0, 2}) {
    const std::vector<std::string> sets =
        in_rounds({fmt::format("rollout.round_min_samples={}", least), "run.save_every=2",
                   fmt::format("rollout.samples_per_prompt={}", 2 + least)});
    const std::string whole = fmt::format("whole-{}", least);
    train(whole, "grpo", sets);
    for (const char* place : {"policy.generate:24", "policy_trainer.train:3", "finished_samples.keep:12"}) {
      const std::string name = fmt::format("{}-{}", whole, std::string(place).substr(0, 14));
      EXPECT_NE(command(name, sets, {{"COLLIMATE_TEST_KILL_AT", place}}).status.signal, 0) << place;
      EXPECT_TRUE(command(name, sets).status.ok()) << place;
      expect_equal_runs(whole, name);
      EXPECT_EQ(graph::check_recording(read_text(directory(name) + "/events.jsonl")), "") << place;
    }
  }
}

// Samples that a run leaves unfinished at its end go on where the run is made longer.
TEST_F(Rounds, ALongerRunGoesOnWithWhatIsLeft) {
  train("long", "grpo", in_rounds());
  train("longer", "grpo", with(in_rounds(), {"run.iterations=3"}));
  train("longer", "grpo", in_rounds());
  expect_equal_runs("long", "longer");
}

TEST_F(Rounds, PpoAndEvaluationsGoOnToo) {
  train(
      "ppo", "ppo",
      in_rounds({"run.evaluate_every=2", "data.eval=" + (scratch_ / "held_out.jsonl"), "train.samples_per_update=4"}));
  EXPECT_GE(all_samples("ppo").size(), 16U);
  double older = 0;
  for (const nlohmann::json& line : metrics_of(directory("ppo"))) {
    EXPECT_EQ(metric(line, "mismatch/logprob_abs_max"), 0);
    older += metric(line, "mismatch/tokens_other_version");
    if (line.at("step").get<int>() % 2 == 0) {
      EXPECT_TRUE(line.contains("val/response_length/mean")) << line;
    }
  }
  EXPECT_GT(older, 0);
}

}  // namespace
}  // namespace collimate::test

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "tests/e2e/near_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

// Generation ahead of training, by older weights: which ones follows from the iteration and not from the clock.
namespace collimate::test {
namespace {

constexpr int kIterations = 5;

class Ahead : public NearRuns {
 protected:
  // The policy generates on a device of its own, with the models that nothing trains.
  static std::string apart(const std::string& training, const std::string& generation, int staleness,
                           const std::string& more = "") {
    return "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {training: {devices: [0], models: [" +
           training + "]}, generation: {devices: [1], models: [" + generation + "]}}" + more +
           (staleness > 0 ? ", staleness: " + std::to_string(staleness) : "") + "}";
  }
  static std::vector<std::string> grpo(int staleness, const std::string& more = "") {
    return with(one(), {"run.iterations=" + std::to_string(kIterations), "run.save_every=1",
                        apart("policy_trainer", "policy, reference", staleness, more)});
  }
  double of_iteration(const std::string& name, int iteration, const std::string& metric) const {
    for (const nlohmann::json& line : metrics_of(directory(name)))
      if (line.at("step") == iteration) return line.at(metric).get<double>();
    ADD_FAILURE() << name << " has no iteration " << iteration;
    return 0;
  }
  // The version that drew an iteration's samples, all of them.
  int64_t version_of(const std::string& name, int iteration) const {
    const auto lines = lines_of(fmt::format("{}/samples/step-{:06}.jsonl", directory(name), iteration));
    EXPECT_FALSE(lines.empty());
    const auto version = nlohmann::json::parse(lines.front()).at("weights_version");
    for (const std::string& line : lines) EXPECT_EQ(nlohmann::json::parse(line).at("weights_version"), version);
    return version.get<int64_t>();
  }
  void expect_equal_runs(const std::string& one, const std::string& other, const std::vector<std::string>& models) {
    EXPECT_TRUE(model_bytes(directory(one)) == model_bytes(directory(other))) << other;
    EXPECT_EQ(without_cache_counts(lasting_metrics(directory(one))),
              without_cache_counts(lasting_metrics(directory(other))))
        << other;
    for (const std::string& model : models)
      EXPECT_TRUE(state_of(directory(one), model, kIterations) == state_of(directory(other), model, kIterations))
          << other << " " << model;
    for (int i = 1; i <= kIterations; ++i) EXPECT_EQ(version_of(one, i), version_of(other, i)) << other << " " << i;
  }
  host::CommandResult command(const std::string& name, const std::string& recipe, const std::vector<std::string>& sets,
                              const Environment& environment = {}) {
    write_text(directory(name) + ".yaml", small_config(recipe, scratch_.path()));
    std::vector<std::string> words = {"train", directory(name) + ".yaml", "--output", directory(name)};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return run_collimate(words, environment);
  }
};

TEST_F(Ahead, AnIterationDrawsByTheWeightsOfOneBefore) {
  const std::string bits = train("ahead", "grpo", grpo(1));
  EXPECT_FALSE(bits == train("together", "grpo", grpo(0)));
  const int64_t first = version_of("ahead", 1), updates = version_of("together", 2) - version_of("together", 1);
  EXPECT_GT(updates, 0);
  for (int i = 1; i <= kIterations; ++i) {
    EXPECT_EQ(version_of("ahead", i), first + std::max(0, i - 2) * updates) << i;
    EXPECT_EQ(of_iteration("ahead", i, "staleness/max"), i == 1 ? 0 : updates) << i;
    EXPECT_EQ(of_iteration("ahead", i, "mismatch/logprob_abs_max"), 0) << i;
    const double tokens = std::round(16 * of_iteration("ahead", i, "response_length/mean"));
    EXPECT_EQ(of_iteration("ahead", i, "mismatch/tokens_compared"), i == 1 ? tokens : 0) << i;
    EXPECT_EQ(of_iteration("ahead", i, "mismatch/tokens_other_version"), i == 1 ? 0 : tokens) << i;
    EXPECT_EQ(of_iteration("together", i, "staleness/max"), 0) << i;
  }
  const auto one = lasting_metrics(directory("ahead")), other = lasting_metrics(directory("together"));
  EXPECT_EQ(one.front(), other.front()) << "the first iteration has nothing to be ahead of";
}

TEST_F(Ahead, ProcessesAndDelaysChangeNothing) {
  train("threads", "grpo", grpo(1));
  {
    const WatchedMessages slow(1, 0.002);
    train("slow", "grpo", grpo(1));
  }
  train_apart("processes", "grpo", grpo(1));
  for (const char* other : {"slow", "processes"}) expect_equal_runs("threads", other, {"policy_trainer", "policy"});
}

TEST_F(Ahead, ARunThatIsKilledGoesOnWithTheSameBits) {
  for (const int staleness : {1, 2}) {
    const std::vector<std::string> sets = grpo(staleness);
    const std::string whole = fmt::format("whole-{}", staleness);
    train(whole, "grpo", sets);
    const std::vector<std::string> places = {"policy.generate:20", "policy_trainer.train:3", "file.before_rename:9"};
    for (const std::string& place : std::span(places).first(staleness == 1 ? 3 : 1)) {
      const std::string name = fmt::format("killed-{}-{}", staleness, place.substr(0, place.find(':')));
      const auto killed = command(name, "grpo", sets, {{"COLLIMATE_TEST_KILL_AT", place}});
      EXPECT_NE(killed.status.signal, 0) << place;
      EXPECT_TRUE(command(name, "grpo", sets).status.ok());
      expect_equal_runs(whole, name, {"policy_trainer", "policy"});
      EXPECT_EQ(graph::check_recording(read_text(directory(name) + "/events.jsonl")), "") << place;
    }
  }
}

// Both workers of the policy are killed among their rows, one after the other, and are back with the newest weights. A
// checkpoint has one version of the policy all the same, and the run goes on from it.
TEST_F(Ahead, GeneratorsThatAreKilledLeaveCheckpointsOfOneVersion) {
  const auto sets = [](int iterations) {
    return with(one(), {"run.iterations=" + std::to_string(iterations), "run.save_every=1", "cluster=local-processes",
                        "placement={version: 1, devices: {count: 3, kind: cpu}, groups: {training: {devices: [0], "
                        "models: [policy_trainer]}, generation: {devices: [1, 2], models: [policy, reference]}}, "
                        "staleness: 2}"});
  };
  // Each of the first five processes has a place of its own to be killed at, to which those that generate come alone.
  std::string script = fmt::format("echo $$ >> '{}'\n", scratch_ / "pids");
  for (const int passage : {8, 12, 16, 20, 24})
    script += fmt::format("[ -z \"$COLLIMATE_TEST_KILL_AT\" ] && mkdir '{}' 2>/dev/null && ",
                          scratch_ / fmt::format("at-{}", passage)) +
              fmt::format("export COLLIMATE_TEST_KILL_AT=policy.generate:{}\n", passage);
  const std::string hooked = collimate_program({{"COLLIMATE_TEST_KILL_AT", "policy.generate:8"}});
  write_text(scratch_ / "worker.sh", script + fmt::format("exec '{}' worker \"$@\"\n", hooked));
  recipe::TrainCall call;
  call.worker_command = {"/bin/sh", scratch_ / "worker.sh"};
  train("lost", "grpo", sets(kIterations), call);
  EXPECT_EQ(lines_of(scratch_ / "pids").size(), 7U) << "two of five were started twice";
  int checkpoints = 0;
  for (int step = 1; step <= kIterations; ++step) {
    if (!fs::exists(fmt::format("{}/checkpoints/step-{:06}", directory("lost"), step))) continue;
    EXPECT_TRUE(state_of(directory("lost"), "policy", step, 0) == state_of(directory("lost"), "policy", step, 1))
        << step;
    ++checkpoints;
  }
  EXPECT_GT(checkpoints, 1);
  train("lost", "grpo", sets(kIterations + 1), call);
  EXPECT_EQ(metrics_of(directory("lost")).size(), static_cast<size_t>(kIterations + 1));
}

TEST_F(Ahead, PpoIsAheadTooAndItsModelsTakeTurns) {
  const auto sets = [&](const std::string& residency) {
    return with_reward_model({"run.iterations=" + std::to_string(kIterations), "run.save_every=2",
                              apart("policy_trainer, value", "policy, reference, reward", 1, residency)});
  };
  train("ppo", "ppo", sets(""));
  EXPECT_GT(of_iteration("ppo", 3, "staleness/max"), 0);
  train("swapped", "ppo",
        sets(", residency: {policy: swap, reference: swap, reward: swap, value: swap, policy_trainer: swap}"));
  expect_equal_runs("ppo", "swapped", {"policy_trainer", "value", "policy"});
  EXPECT_NE(command("killed", "ppo", sets(""), {{"COLLIMATE_TEST_KILL_AT", "value.train:4"}}).status.signal, 0);
  EXPECT_TRUE(command("killed", "ppo", sets("")).status.ok());
  expect_equal_runs("ppo", "killed", {"policy_trainer", "value", "policy"});
}

TEST_F(Ahead, AnEvaluationMeasuresTheNewestWeightsFromWhichGenerationGoesOn) {
  const auto sets = [&](int staleness) {
    return with(grpo(staleness), {"run.evaluate_every=2", "data.eval=" + (scratch_ / "held_out.jsonl")});
  };
  train("evaluated", "grpo", sets(1));
  for (const auto& [iteration, stale] : std::map<int, bool>{{1, false}, {2, true}, {3, false}, {4, true}, {5, false}})
    EXPECT_EQ(of_iteration("evaluated", iteration, "staleness/max") > 0, stale) << iteration;
  EXPECT_NE(command("killed", "grpo", sets(1), {{"COLLIMATE_TEST_KILL_AT", "policy.generate:30"}}).status.signal, 0);
  EXPECT_TRUE(command("killed", "grpo", sets(1)).status.ok());
  expect_equal_runs("evaluated", "killed", {"policy_trainer", "policy"});
}

TEST_F(Ahead, AnotherStalenessGoesOnFromACheckpointAndWhatCannotBeAheadIsRefused) {
  for (const auto& [from, to] : std::map<int, int>{{0, 1}, {1, 0}}) {
    const std::string name = fmt::format("from-{}", from);
    const auto train_twice = [&](const std::string& run) {
      train(run, "grpo", with(grpo(from), {"run.iterations=2"}));
      train(run, "grpo", grpo(to));
    };
    train_twice(name);
    EXPECT_EQ(metrics_of(directory(name)).size(), static_cast<size_t>(kIterations));
    EXPECT_EQ(of_iteration(name, kIterations, "staleness/max") > 0, to > 0);
    // The newest are transferred first: those after two iterations.
    const int on_time = from == 0 ? 1 : 3;  // it and the next one draw by weights of one update after another
    const int64_t updates = version_of(name, on_time + 1) - version_of(name, on_time);
    EXPECT_GT(updates, 0);
    EXPECT_EQ(version_of(name, 3), version_of(name, 1) + 2 * updates);
    train_twice(name + "-again");
    expect_equal_runs(name, name + "-again", {"policy_trainer"});
  }
  const std::string one_group =
      "placement={version: 1, devices: {count: 1, kind: cpu}, groups: {all: {devices: [0], models: [policy, "
      "policy_trainer, reference]}}, staleness: 1}";
  EXPECT_THAT(refusal("grpo", with(one(), {one_group})),
              testing::HasSubstr("[placement.staleness] expected 0, as policy and policy_trainer are both on device 0, "
                                 "got 1; try a group of other devices for policy"));
  EXPECT_THAT(refusal("dpo", {"placement={version: 1, devices: {count: 1, kind: cpu}, groups: {all: {devices: [0], "
                              "models: [policy, reference]}}, staleness: 1}"}),
              testing::HasSubstr("[placement.staleness] expected 0 of a recipe that generates nothing, got 1"));
}

}  // namespace
}  // namespace collimate::test

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "collimate/base/at.h"
#include "tests/e2e/wall_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

namespace collimate::test {
namespace {

constexpr const char* kTwoDevices =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {trained: {devices: [0], models: [policy, policy_trainer, value]}, "
    "frozen: {devices: [1], models: [reference, reward]}}}";
// This file says the same.
constexpr const char* kTwoDevicesFile =
    "version: 1\n"
    "devices: {count: 2, kind: cpu}\n"
    "groups:\n"
    "  trained: {devices: [0], models: [policy, policy_trainer, value]}\n"
    "  frozen: {devices: [1], models: [reference, reward]}\n";
// The policy generates on a device of its own, with weights that a link brings after every update.
constexpr const char* kGenerationApart =
    "placement={version: 1, devices: {count: 2, kind: cpu}, "
    "groups: {training: {devices: [0], models: [policy_trainer, reference]}, "
    "generation: {devices: [1], models: [policy]}}}";

void expect_equal_state(const std::string& a, const std::string& b, const std::string& model) {
  const auto one = state_of(a, model, 3), two = state_of(b, model, 3);
  ASSERT_TRUE(one.contains("weights.0.bin") && one.contains("adamw.first.0.bin")) << model;
  EXPECT_NE(one.at("adamw.first.0.bin").find_first_not_of('\0'), std::string::npos) << model << " is not trained";
  ASSERT_EQ(one.size(), two.size()) << model;
  for (const auto& [file, bytes] : one)
    EXPECT_TRUE(two.contains(file) && two.at(file) == bytes) << model << " " << file;
}

// Is every run of this process reparsed, as in the second pass of tools/run_tests.py?
bool always_reparsed() {
  const char* word = std::getenv("COLLIMATE_TEST_REPARSE");
  return word != nullptr && *word != '\0';
}

int64_t workers_of(const std::string& output) {
  int64_t workers = 0;
  const auto trace = nlohmann::json::parse(read_text(output + "/trace.json"));
  for (const nlohmann::json& event : trace.at("traceEvents"))
    if (event.at("name") == "process_name") ++workers;
  return workers;
}

// An iteration has at least two tasks; each is started, fed and closed.
int64_t fewest_messages(const std::string& output) { return static_cast<int64_t>(metrics_of(output).size()) * 2 * 3; }

// Expects that all of the run in `output`, or nothing, was reparsed.
void expect_reparsed(bool all, const WatchedMessages& run, const std::string& output) {
  EXPECT_EQ(run.specs(), all ? workers_of(output) : 0) << output;
  if (all) {
    EXPECT_GT(fewest_messages(output), 0) << output;
    EXPECT_GE(run.of_driver(), fewest_messages(output)) << output;
    EXPECT_GE(run.of_workers(), fewest_messages(output) / 3 * 2) << output;  // rows and finished
  } else {
    EXPECT_EQ(run.of_driver(), 0) << output;
    EXPECT_EQ(run.of_workers(), 0) << output;
  }
}

TEST_F(Walls, WorkersAndMessagesFromReparsedText) {
  for (const std::string recipe : {"grpo", "ppo", "dpo"}) {
    std::vector<std::string> sets;
    if (recipe == "grpo") sets.emplace_back("algorithm.beta=0.04");
    const WatchedMessages first;
    const std::string plain = train(recipe, recipe, sets);
    EXPECT_GT(plain.size(), 10000U) << recipe;
    expect_reparsed(always_reparsed(), first, directory(recipe));
    const WatchedMessages second;
    const base::Reparsing reparsing;
    EXPECT_TRUE(plain == train(recipe + "-reparsed", recipe, sets)) << recipe;
    expect_reparsed(true, second, directory(recipe + "-reparsed"));
  }
}

TEST_F(Walls, AWorkerAsAChildProcess) {
  // Says which process it is, then is the worker.
  const std::string worker = collimate_program();
  write_text(scratch_ / "worker.sh",
             fmt::format("echo $$ >> '{}'\nexec '{}' worker \"$@\"\n", scratch_ / "pids", worker));
  recipe::TrainCall call;
  call.worker_command = {"/bin/sh", scratch_ / "worker.sh"};
  const std::vector<std::string> sets = {"run.iterations=1", "algorithm.beta=0.04"};
  const std::string threads = train("threads", "grpo", sets);
  std::vector<std::string> processes = sets;
  processes.emplace_back("cluster=local-processes");
  EXPECT_FALSE(fs::exists(scratch_ / "pids"));
  EXPECT_TRUE(threads == train("processes", "grpo", processes, call));
  const std::vector<std::string> pids = lines_of(scratch_ / "pids");
  const std::set<std::string> different(pids.begin(), pids.end());
  EXPECT_EQ(static_cast<int64_t>(different.size()), workers_of(directory("processes")));
  EXPECT_GE(different.size(), 1U);
  EXPECT_FALSE(different.contains(std::to_string(getpid())));
}

TEST_F(Walls, PpoUnderTwoPlacementsHasEqualBits) {
  const std::string one = train("one", "ppo", with_reward_model({kOneDevice}));
  write_text(scratch_ / "two-devices.yaml", kTwoDevicesFile);
  const std::string two = train("two", "ppo", with_reward_model({"placement=" + (scratch_ / "two-devices.yaml")}));
  EXPECT_TRUE(one == two);
  EXPECT_EQ(lasting_metrics(directory("one")).size(), 3U);
  EXPECT_EQ(lasting_metrics(directory("one")), lasting_metrics(directory("two")));
  for (const char* model : {"policy_trainer", "value"}) expect_equal_state(directory("one"), directory("two"), model);
  int overlapping = 0;
  for (int iteration = 1; iteration <= 3; ++iteration) {
    const auto frozen = spans_of(directory("two"), iteration, {"reference.log_probs", "reward.score"});
    const auto trained = spans_of(directory("two"), iteration, {"policy.generate", "value.values"});
    ASSERT_EQ(frozen.size(), 1U);
    ASSERT_EQ(trained.size(), 1U);
    EXPECT_EQ(trained.begin()->first, 0);
    EXPECT_EQ(frozen.begin()->first, 1);
    if (frozen.at(1).begin < trained.at(0).end && trained.at(0).begin < frozen.at(1).end) ++overlapping;
    EXPECT_EQ(spans_of(directory("one"), iteration, {"reference.log_probs", "value.values"}).size(), 1U);
  }
  EXPECT_GT(overlapping, 0);
}

// A message that has no room is never lost, and nobody waits in a circle: that would end by the deadline.
TEST_F(Walls, PpoThroughMailboxesOfOneMessageAndRandomDelays) {
  const auto sets = with_reward_model({kTwoDevices, "run.deadline_seconds=30"});
  const WatchedMessages easy;
  const std::string plain = train("plain", "ppo", sets);
  EXPECT_GT(easy.most_held(), 1);
  EXPECT_EQ(easy.delays(), 0);
  const WatchedMessages hard(1, 0.002);
  EXPECT_TRUE(plain == train("hard", "ppo", sets));
  EXPECT_EQ(hard.most_held(), 1);
  EXPECT_GE(hard.delays(), fewest_messages(directory("hard")));
  EXPECT_EQ(lasting_metrics(directory("plain")).size(), 3U);
  EXPECT_EQ(lasting_metrics(directory("plain")), lasting_metrics(directory("hard")));
  for (const char* model : {"policy_trainer", "value"})
    expect_equal_state(directory("plain"), directory("hard"), model);
}

TEST_F(Walls, GenerationApartFromTrainingHasEqualBits) {
  const std::vector<std::string> sets = {"algorithm.beta=0.04", "placement=separation", "devices=2"};
  const std::string together = train("together", "grpo", {"algorithm.beta=0.04"});
  EXPECT_TRUE(together == train("apart", "grpo", sets));
  expect_equal_state(directory("together"), directory("apart"), "policy_trainer");
  EXPECT_EQ(lasting_metrics(directory("together")), lasting_metrics(directory("apart")));
  const Metrics metrics = metrics_of(directory("apart"));
  ASSERT_EQ(metrics.size(), 3U);
  for (int i = 1; i <= 3; ++i) {
    const nlohmann::json& step = base::at(metrics, i - 1);
    const double trained = std::round(16 * step.at("response_length/mean").get<double>());  // of 4 · 4 samples
    EXPECT_GE(trained, 16) << i;
    EXPECT_EQ(step.at("mismatch/tokens_compared").get<double>(), trained) << i;
    EXPECT_EQ(step.at("mismatch/tokens_other_version").get<double>(), 0) << i;
    EXPECT_EQ(step.at("mismatch/logprob_abs_max").get<double>(), 0) << i;
    EXPECT_TRUE(spans_of(directory("apart"), i, {"policy.generate"}).contains(1)) << i;
    EXPECT_TRUE(spans_of(directory("apart"), i, {"policy_trainer.train"}).contains(0)) << i;
  }
  const base::Reparsing reparsing;
  EXPECT_TRUE(together == train("apart-reparsed", "grpo", sets));
}

// A checkpoint has the trainer's weights alone: the first transfer of the run that goes on brings them to the policy.
TEST_F(Walls, GenerationApartFromTrainingGoesOnAfterAStop) {
  const std::vector<std::string> sets = {"algorithm.beta=0.04", kGenerationApart};
  const std::string whole = train("whole", "grpo", sets);
  train_until_stopped(small_config("grpo", scratch_.path()), directory("resumed"), sets);
  EXPECT_TRUE(whole == train("resumed", "grpo", sets));
  EXPECT_EQ(lasting_metrics(directory("whole")), lasting_metrics(directory("resumed")));
}

TEST_F(Walls, RecordedEventsReplayToTheRecordedActions) {
  train("grpo", "grpo", {"algorithm.beta=0.04"});
  train("one", "ppo", with_reward_model({kOneDevice}));
  train("two", "ppo", with_reward_model({kTwoDevices}));
  for (const char* run : {"grpo", "one", "two"}) {
    const std::string recording = read_text(directory(run) + "/events.jsonl");
    EXPECT_GT(recording.size(), 1000U);
    EXPECT_EQ(graph::check_recording(recording), "") << run;
  }
  // An event less must show.
  std::vector<std::string> lines = lines_of(directory("grpo") + "/events.jsonl");
  std::string shorter;
  for (size_t i = 0; i < lines.size(); ++i)
    if (i != 3) shorter += lines[i] + "\n";
  bool noticed = false;
  try {
    noticed = !graph::check_recording(shorter).empty();
  } catch (const std::exception&) {
    noticed = true;
  }
  EXPECT_TRUE(noticed);
}

}  // namespace
}  // namespace collimate::test

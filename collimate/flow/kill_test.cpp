#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collimate/base/deadline.h"
#include "collimate/flow/checkpoints.h"
#include "tests/support/flow/toy_modules.h"
#include "tests/support/host/run_command.h"

namespace collimate::flow {
namespace {

constexpr int64_t kIterations = 5;

// Generates eight rows and has the run's reward score them.
Evaluation scored_evaluation(bool deterministic) {
  graph::ModelHandle policy("policy", {toy::generate_spec()}), reward("reward", {toy::score_spec(deterministic)});
  Evaluation evaluation =
      toy::evaluation_of("evaluation", [&](graph::Value prompts) { reward("score", policy("generate", prompts)); });
  evaluation.name = "scored";
  return evaluation;
}

std::string scored_line(const IterationResult& result) {
  nlohmann::ordered_json line;
  for (const auto& [name, value] : result.metrics.items())
    if (!name.starts_with("timing_s/") && !name.starts_with("memory/")) line[name] = value;
  line["reward"] = result.batches.at("reward.score").all(batch::kReward);
  return line.dump();
}

// Runs the toy flow in `directory` ("" for none), going on from its newest checkpoint; gives the line of every
// iteration and evaluation.
using Lines = std::map<std::string, std::string>;
Lines run_in(const std::string& directory, bool random, const std::string& replay = "") {
  Lines lines;
  RunOptions options = toy::run_options(kIterations);
  options.schedule.save_every = 2;
  options.directory = directory;
  options.replay = replay;
  if (random) options.modules["reward"] = {"reward", {{"random", true}}};
  if (!directory.empty()) options.resume = Checkpoints(directory).latest();
  options.schedule.evaluate_every = 1;
  options.schedule.evaluate_first = true;
  options.evaluations = {scored_evaluation(!random)};
  options.on_iteration = [&](const IterationResult& result) {
    lines[fmt::format("iteration {}", result.iteration)] = scored_line(result);
  };
  options.evaluations[0].on_result = [&](const IterationResult& result) {
    lines[fmt::format("evaluation {}", result.iteration)] = scored_line(result);
  };
  graph::Graph graph = toy::flow(!random);
  Registry registry = toy::registry();
  run(graph, graph::flattening(graph, 2), registry, options);
  return lines;
}

// This program as the process that is killed: `flow_test crash DIRECTORY random|plain`.
class CrashEntry : public testing::Environment {
 public:
  void SetUp() override {
    const std::vector<std::string> words = toy::command_line();
    if (words.size() != 4 || words[1] != "crash") return;
    run_in(words[2], words[3] == "random");
    _exit(0);
  }
};
[[maybe_unused]] const auto* const kCrashEntry = testing::AddGlobalTestEnvironment(new CrashEntry);

void crash(const std::string& directory, const std::string& place, bool random) {
  host::ChildOptions options;
  options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "crash", directory,
                     random ? "random" : "plain"};
  options.environment = {{"COLLIMATE_TEST_KILL_AT", place}};
  host::CommandResult result = host::run_command(options, "", base::Deadline::after(60));
  ASSERT_EQ(result.status.signal, SIGKILL) << place << ": " << result.status.description() << result.errors;
}

std::string fresh_directory(const std::string& name) {
  std::string path = testing::TempDir() + "collimate-kill-" + std::to_string(getpid()) + "-" + name;
  std::filesystem::remove_all(path);
  return path;
}

class Kill : public testing::TestWithParam<const char*> {};

TEST_P(Kill, ResumeEqualsTheUndisturbedRun) {
  std::string directory = fresh_directory("plain");
  crash(directory, GetParam(), false);
  const Lines rest = run_in(directory, false), whole = run_in("", false);
  EXPECT_EQ(whole.size(), 2 * kIterations + 1U);
  for (const char* what : {"iteration", "evaluation"})
    EXPECT_TRUE(rest.contains(fmt::format("{} {}", what, kIterations - 1))) << what;
  for (const auto& [place, line] : rest) EXPECT_EQ(line, whole.at(place)) << place;
}

INSTANTIATE_TEST_SUITE_P(Points, Kill,
                         testing::Values("policy.generate:2", "policy.generate:13", "reward.score:1", "reward.score:10",
                                         "trainer.train:1", "trainer.train:4", "trainer.train:8",
                                         "directory.before_rename:1", "directory.before_rename:2",
                                         "directory.after_rename:1", "directory.after_rename:2"));

TEST(KillWithRandomRewards, ResumedRunEqualsAReplayOfItsJournal) {
  for (const char* place : {"journal.before_commit:8", "journal.after_commit:11", "trainer.train:7"}) {
    std::string directory = fresh_directory("random");
    crash(directory, place, true);
    const Lines rest = run_in(directory, true), replayed = run_in("", true, directory + "/journal.bin");
    EXPECT_TRUE(rest.contains(fmt::format("evaluation {}", kIterations - 1))) << place;
    for (const auto& [at, line] : rest) EXPECT_EQ(line, replayed.at(at)) << place << " " << at;
  }
}

}  // namespace
}  // namespace collimate::flow

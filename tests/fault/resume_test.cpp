#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>

#include "tests/fault/cli_support.h"
#include "tests/fault/runs.h"
#include "tests/support/graph/replay.h"

namespace collimate::test {
namespace {

// A run has left this, which an interruption must not change.
struct Left {
  std::vector<std::string> metrics;
  std::string model;                           // and its moving average, where it has one
  std::map<std::string, std::string> samples;  // of every iteration and evaluation, by file
  std::string summary;                         // what of it does not depend on the clock
  std::map<std::string, std::string> state;    // of every worker's models in the last checkpoint, by file
};

std::map<std::string, std::string> files_below(const fs::path& directory) {
  std::map<std::string, std::string> files;
  if (!fs::exists(directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) files[fs::relative(entry.path(), directory).string()] = read_text(entry.path());
  return files;
}

// Weights and optimizer states of a checkpoint, those of models that the run does not export too.
std::map<std::string, std::string> state_of(const std::string& checkpoint) {
  auto files = files_below(checkpoint);
  std::erase_if(files, [](const auto& file) { return !file.first.starts_with("models/"); });
  return files;
}

Left left_in(const std::string& output) {
  const auto summary = nlohmann::json::parse(read_text(output + "/summary.json"));
  return {lasting_metrics(output),
          read_text(output + "/model/model.safetensors") + read_text(output + "/model-ema/model.safetensors"),
          files_below(output + "/samples"),
          nlohmann::json{summary.at("tokens"), summary.at("best_metrics"), summary.at("model_hash")}.dump(),
          state_of(checkpoint_of(output, kIterations))};
}

void expect_equal_files(const std::map<std::string, std::string>& left, const std::map<std::string, std::string>& right,
                        const std::string& what) {
  EXPECT_EQ(left.size(), right.size()) << what;
  for (const auto& [file, bytes] : left)
    EXPECT_TRUE(right.contains(file) && right.at(file) == bytes) << what << ": other " << file;
}

void expect_equal(const Left& left, const Left& right, const std::string& what) {
  EXPECT_EQ(left.metrics, right.metrics) << what;
  EXPECT_TRUE(left.model == right.model) << what << ": other weights";
  expect_equal_files(left.samples, right.samples, what);
  EXPECT_EQ(left.summary, right.summary) << what;
  EXPECT_FALSE(left.state.empty()) << what;
  expect_equal_files(left.state, right.state, what);
}

// Every place is killed in a run of its own, which is then gone on with.
void expect_resumed_equals_whole(Runs& runs, const std::vector<std::string>& places) {
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const Left whole = left_in(runs.directory("whole"));
  for (const std::string& place : places) {
    ASSERT_NO_FATAL_FAILURE(runs.kill_at(place, place));
    ASSERT_NO_FATAL_FAILURE(runs.finish(place, {"--resume", "auto"}));
    expect_equal(left_in(runs.directory(place)), whole, place);
    EXPECT_EQ(graph::check_recording(read_text(runs.directory(place) + "/events.jsonl")), "") << place;
  }
}

TEST(Resume, GrpoKilledInEveryPhase) {
  Runs runs("resume-grpo", "grpo", "algorithm: {beta: 0.04}\n");
  expect_resumed_equals_whole(
      runs, {"policy.generate:3", "policy.generate:20", "reward.score:2", "reference.log_probs:2", "advantages:3",
             "policy_trainer.train:1", "model.backward:2", "model.backward:9", "optimizer.parameter:5",
             "optimizer.parameter:50", "file.before_rename:1", "file.before_rename:4", "directory.before_rename:1",
             "directory.before_rename:3", "directory.after_rename:1", "directory.after_rename:2",
             "directory.before_remove:1"});
  EXPECT_EQ(lasting_metrics(runs.directory("whole")).size(), static_cast<size_t>(kIterations));
}

TEST(Resume, PpoWithEvaluationKilledBetweenItsTwoUpdates) {
  Runs runs("resume-ppo", "ppo", "evaluation: {examples: 4}\n");
  runs.edit("problems.jsonl}", "problems.jsonl, eval: " + (runs.scratch() / "held_out.jsonl") +
                                   ", ptx: " + (runs.scratch() / "demonstrations.jsonl") + ", max_tokens: 16}");
  runs.edit("learning_rate: 1e-3", "learning_rate: 1e-3, ema: 0.9, ptx_weight: 2");
  runs.edit("save_every: 1", "save_every: 1, evaluate_every: 2");
  expect_resumed_equals_whole(runs, {"judge.score:1", "judge.score:2", "value.values:2", "value.train:1",
                                     "optimizer.parameter:30", "advantages:3", "directory.after_rename:2"});
  const Left whole = left_in(runs.directory("whole"));
  for (const char* model : {"policy_trainer", "value"}) {
    const std::string files = fmt::format("models/{}/rank-0/", model);
    ASSERT_TRUE(whole.state.contains(files + "weights.0.bin") && whole.state.contains(files + "adamw.first.0.bin"));
    EXPECT_NE(whole.state.at(files + "adamw.first.0.bin").find_first_not_of('\0'), std::string::npos) << model;
    EXPECT_EQ(whole.state.contains(files + "average.0.bin"), model == std::string("policy_trainer"));
  }
  const std::string output = runs.directory("whole");
  EXPECT_NE(read_text(output + "/model-ema/model.safetensors"), read_text(output + "/model/model.safetensors"));
  EXPECT_TRUE(fs::exists(output + "/model-ema/config.json"));
  EXPECT_NE(whole.metrics.back().find("\"actor/ptx_loss\""), std::string::npos) << whole.metrics.back();
}

// Rewards drawn at random in Python, with more options of their entry.
void draw_rewards(Runs& runs, const std::string& more = "") {
  write_text(runs.scratch() / "draw.py",
             "import random\n"
             "def score(prompts, completions, **columns):\n"
             "    return [random.random() for _ in completions]\n");
  runs.edit("{rule: regex, pattern: \"^[0-4]\"}",
            "{python: \"" + (runs.scratch() / "draw.py") + ":score\"" + more + "}");
}

// Killed in its last iteration, whose rewards are in the journal alone, and gone on with elsewhere before in place.
TEST(Resume, AnotherDirectoryGetsTheWholeRun) {
  Runs runs("resume-elsewhere", "grpo", "");
  draw_rewards(runs, ", deterministic: false");
  ASSERT_NO_FATAL_FAILURE(runs.kill_at(fmt::format("policy_trainer.train:{}", kIterations), "r1"));
  const auto before = files_below(runs.directory("r1"));
  ASSERT_NO_FATAL_FAILURE(runs.finish("r2", {"--resume", runs.directory("r1")}));
  expect_equal_files(files_below(runs.directory("r1")), before, "the run gone on from");
  ASSERT_NO_FATAL_FAILURE(runs.finish("r1"));
  const Left elsewhere = left_in(runs.directory("r2"));
  EXPECT_EQ(elsewhere.metrics.size(), static_cast<size_t>(kIterations));
  expect_equal(elsewhere, left_in(runs.directory("r1")), "elsewhere");
  EXPECT_EQ(graph::check_recording(read_text(runs.directory("r2") + "/events.jsonl")), "");
}

// A recording serves replays alone: without it a checkpoint is as good.
TEST(Resume, ARunThatHasLostItsRecordingGoesOn) {
  Runs runs("resume-recording", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  ASSERT_NO_FATAL_FAILURE(runs.kill_at("policy.train:3", "lost"));
  const std::string events = runs.directory("lost") + "/events.jsonl";
  ASSERT_TRUE(fs::remove(events));
  const host::CommandResult rest = runs.train("lost", {}, {});
  ASSERT_TRUE(rest.status.ok()) << rest.status.description() << ": " << rest.errors;
  EXPECT_NE(rest.errors.find(": a new recording begins here"), std::string::npos) << rest.errors;
  expect_equal(left_in(runs.directory("lost")), left_in(runs.directory("whole")), "lost");
  EXPECT_EQ(graph::check_recording(read_text(events)), "");
}

// Checkpoints hold adapters alone; the weights beside them are made or read again.
TEST(Resume, AdaptersGoOnBesideTheWeightsTheyBeganWith) {
  Runs runs("resume-lora", "grpo", "algorithm: {beta: 0.04}\n");
  runs.edit("initializer_std: 0.1", "initializer_std: 0.1, lora: {rank: 4}");
  expect_resumed_equals_whole(runs, {"policy.generate:20", "policy_trainer.train:2", "model.backward:9",
                                     "optimizer.parameter:30", "directory.after_rename:2", "file.before_rename:4"});
  const Left whole = left_in(runs.directory("whole"));
  EXPECT_TRUE(whole.state.contains("models/policy_trainer/rank-0/weights.4.bin"));
  EXPECT_FALSE(whole.state.contains("models/policy_trainer/rank-0/weights.1.bin"));
  for (const char* file : {"adapter_model.safetensors", "adapter_config.json"})
    EXPECT_EQ(read_text(runs.directory("optimizer.parameter:30") + "/model/adapter/" + file),
              read_text(runs.directory("whole") + "/model/adapter/" + file));
}

TEST(Resume, SftGoesOnInTheMiddleOfItsData) {
  Runs runs("resume-sft", "sft", "");
  expect_resumed_equals_whole(runs, {"policy.train:2", "optimizer.parameter:45", "directory.after_rename:3"});
}

// A longer run goes on as if asked for so many at first; also where nobody came to the first end's model.
TEST(Resume, ALongerRunGoesOn) {
  Runs runs("resume-longer", "grpo", "algorithm: {beta: 0.04}\n");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  ASSERT_NO_FATAL_FAILURE(runs.finish("longer", {"--set", "run.iterations=2", "--set", "run.keep_checkpoints=1"}));
  const host::CommandResult killed = runs.train("longer", {}, {{"COLLIMATE_TEST_KILL_AT", "policy.generate:2"}});
  EXPECT_EQ(killed.status.signal, SIGKILL);
  EXPECT_NE(killed.errors.find("\nchanged: run.iterations: 2 -> 4\n"), std::string::npos) << killed.errors;
  EXPECT_NE(killed.errors.find("\nchanged: run.keep_checkpoints: 1 -> 2\n"), std::string::npos) << killed.errors;
  ASSERT_NO_FATAL_FAILURE(runs.finish("longer"));
  const Left whole = left_in(runs.directory("whole")), longer = left_in(runs.directory("longer"));
  EXPECT_EQ(longer.metrics, whole.metrics);
  EXPECT_TRUE(longer.model == whole.model);
  expect_equal_files(longer.state, whole.state, "longer");
  const host::CommandResult shorter = runs.train("longer", {"--set", "run.iterations=3"}, {});
  EXPECT_NE(shorter.errors.find("[run.iterations] expected at least the 4 that are done, got 3"), std::string::npos);
  const host::CommandResult other = runs.train("longer", {"--set", "train.learning_rate=2e-3"}, {});
  EXPECT_NE(other.errors.find("of another config (train.learning_rate: 0.001 -> 0.002)"), std::string::npos);
}

// Another config's journal does not answer the rows of this one.
void expect_refused_replay(Runs& runs, const std::vector<std::string>& more, int iteration,
                           const std::string& expected) {
  fs::remove_all(runs.directory("refused"));
  const host::CommandResult result = runs.train("refused", more, {});
  EXPECT_EQ(result.status.code, 2) << result.status.description() << ": " << result.errors;
  EXPECT_EQ(with_word(last_line(result.errors), "uid -?[0-9]+", "uid UID"),
            fmt::format("[--replay, iteration {}, node reward.score, uid UID] expected {}; try --replay with the "
                        "journal of this config",
                        iteration, expected));
}

TEST(Resume, RandomRewardsAreThoseOfTheJournal) {
  Runs runs("resume-random", "grpo", "");
  draw_rewards(runs);
  for (const char* place : {"journal.after_commit:3", "policy_trainer.train:3"}) {
    ASSERT_NO_FATAL_FAILURE(runs.kill_at(place, place));
    ASSERT_NO_FATAL_FAILURE(runs.finish(place, {"--resume", "auto"}));
    const std::string replayed = std::string(place) + "-replayed";
    ASSERT_NO_FATAL_FAILURE(runs.finish(replayed, {"--replay", runs.directory(place) + "/journal.bin"}));
    expect_equal(left_in(runs.directory(place)), left_in(runs.directory(replayed)), place);
    EXPECT_NE(left_in(runs.directory(replayed)).metrics.at(0).find("\"rewards/"), std::string::npos);
  }
  const std::string journal = runs.directory("policy_trainer.train:3") + "/journal.bin";
  expect_refused_replay(runs, {"--replay", journal, "--set", "train.learning_rate=1e-2"}, 2,
                        "the row that the journal answered, got another");
  expect_refused_replay(runs, {"--replay", journal, "--set", fmt::format("run.iterations={}", kIterations + 1)},
                        kIterations + 1, "a row that the journal answers, got one that it lacks");
  ASSERT_NO_FATAL_FAILURE(runs.finish("other"));
  EXPECT_NE(left_in(runs.directory("other")).model, left_in(runs.directory("policy_trainer.train:3")).model);
}

int64_t bytes_below(const fs::path& directory) {
  int64_t bytes = 0;
  for (const auto& [file, content] : files_below(directory)) bytes += static_cast<int64_t>(content.size());
  return bytes;
}

// Counts what a run writes until it exports its model, from what it has left: its last two checkpoints alone.
int64_t bytes_before_export(const std::string& output) {
  int64_t bytes = bytes_below(output) - bytes_below(output + "/model") - bytes_below(output + "/checkpoints");
  for (const char* later : {"trace.json", "summary.json", "report.html"})
    bytes -= static_cast<int64_t>(fs::file_size(output + "/" + later));
  return bytes + kIterations * bytes_below(checkpoint_of(output, kIterations));
}

// A run on a disk of so many bytes ends in writing a file below `place`; the checkpoints that it had are whole.
void expect_full_in(Runs& runs, const std::string& name, int64_t bytes, const std::string& place,
                    const std::vector<std::string>& checkpoints) {
  const std::string output = runs.directory(name);
  const host::CommandResult full = runs.train(name, {}, {{"COLLIMATE_TEST_DISK_BYTES", fmt::to_string(bytes)}});
  EXPECT_EQ(full.status.code, 1) << full.errors;
  EXPECT_EQ(with_word(last_line(full.errors), fmt::format("^\\[{}/{}/[^\\]]+\\]", output, place), "[FILE]"),
            "[FILE] expected to write, got No space left on device; try freeing space on that disk");
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(output + "/checkpoints")) left.push_back(entry.path().filename());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, checkpoints) << "whole ones alone";
  EXPECT_FALSE(fs::exists(output + "/model/model.safetensors"));
}

// Goes on from that checkpoint to what an undisturbed run leaves.
void expect_goes_on_from(Runs& runs, const std::string& name, int step) {
  const host::CommandResult rest = runs.train(name, {}, {});
  ASSERT_TRUE(rest.status.ok()) << rest.status.description() << ": " << rest.errors;
  EXPECT_NE(rest.errors.find(fmt::format("resume: from iteration {} ", step)), std::string::npos) << rest.errors;
  expect_equal(left_in(runs.directory(name)), left_in(runs.directory("whole")), name);
}

TEST(Resume, ADiskFullOfCheckpointsLosesNothing) {
  Runs runs("resume-disk", "grpo", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const int64_t checkpoint = bytes_below(checkpoint_of(runs.directory("whole"), kIterations));
  expect_full_in(runs, "full", 2 * checkpoint + checkpoint / 2, "checkpoints", {"step-000001", "step-000002"});
  expect_goes_on_from(runs, "full", 2);
}

TEST(Resume, ADiskFullAtTheExportLosesNothing) {
  Runs runs("resume-disk-export", "grpo", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  const std::string whole = runs.directory("whole");
  const int64_t bytes = bytes_before_export(whole) + bytes_below(whole + "/model") / 2;
  expect_full_in(runs, "full", bytes, "model", {"step-000003", "step-000004"});
  expect_equal_files(state_of(checkpoint_of(runs.directory("full"), kIterations)),
                     state_of(checkpoint_of(whole, kIterations)), "the last checkpoint");
  expect_goes_on_from(runs, "full", kIterations);
}

// Killed before it has saved a checkpoint of its own, when the run that it goes on from is no more.
TEST(Resume, AnotherDirectoryNeedsTheFirstOneOnce) {
  Runs runs("resume-alone", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  ASSERT_NO_FATAL_FAILURE(runs.kill_at("directory.after_rename:2", "r1"));
  const host::CommandResult killed =
      runs.train("r2", {"--resume", runs.directory("r1")}, {{"COLLIMATE_TEST_KILL_AT", "policy.train:1"}});
  ASSERT_EQ(killed.status.signal, SIGKILL) << killed.status.description() << killed.errors;
  fs::remove_all(runs.directory("r1"));
  expect_goes_on_from(runs, "r2", 2);
}

// The config's run, when it holds that directory and its metrics have two records.
std::unique_ptr<host::ChildProcess> start_run(const Runs& runs, const std::string& output,
                                              const base::Deadline& deadline, const Environment& environment = {}) {
  host::ChildOptions options;
  options.environment = environment;
  options.command = {collimate_program(), "train", runs.config(), "--output", output};
  options.input = options.output = options.errors = host::ChildStream::kNull;
  auto child = std::make_unique<host::ChildProcess>(options);
  const std::string holder = fmt::format("{}\n", child->pid());
  while (!deadline.expired() &&
         (read_text(output + "/run.lock") != holder || lines_of(output + "/metrics.jsonl").size() < 2))
    ::usleep(1000);
  return child;
}

// Asks a run to stop, which saves and ends with 3.
void stop(host::ChildProcess& run, const base::Deadline& deadline) {
  run.signal(SIGTERM);
  const auto status = run.wait(deadline);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 3) << status->description();
}

// The second of two runs in a directory is refused while the first goes on, even when it is stopped by force.
TEST(Resume, ADirectoryIsOfOneRunAtATime) {
  Runs runs("resume-lock", "sft", "");
  runs.edit("iterations: 4, save_every: 1", "iterations: 100000, save_every: 0");
  const std::string output = runs.directory("run");
  const base::Deadline deadline = base::Deadline::after(60);
  const auto first = start_run(runs, output, deadline);
  for (const std::string resume : {"auto", output.c_str()}) {
    const host::CommandResult second = runs.train("run", {"--resume", resume}, {});
    EXPECT_EQ(second.status.code, 2) << second.status.description() << second.errors;
    EXPECT_NE(last_line(second.errors)
                  .find(fmt::format("[--output] expected a directory that no run is writing now, got {}, which process "
                                    "{} is writing; try again after its end, or another --output",
                                    output, first->pid())),
              std::string::npos)
        << second.errors;
  }
  ASSERT_NO_FATAL_FAILURE(stop(*first, deadline));
  int64_t step = 0;
  for (const std::string& line : lines_of(output + "/metrics.jsonl"))
    EXPECT_EQ(nlohmann::json::parse(line).at("step"), ++step);

  const auto again = start_run(runs, output, deadline);
  again->signal(SIGKILL);
  ASSERT_TRUE(again->wait(deadline));
  const auto last = start_run(runs, output, deadline);
  stop(*last, deadline);
}

// Workers in processes of their own, a reward in Python in its sandbox and their sockets end with the run: nothing of
// them is left for a later run to find.
TEST(Resume, ARunThatIsKilledLeavesNoTemporaryFile) {
  Runs runs("resume-temporary", "grpo", "cluster: local-processes\ndevices: 2\n");
  const std::string reward = runs.scratch() / "reward.py", temporary = runs.scratch() / "temporary";
  write_text(reward, "def score(prompts, completions, **kw):\n    return [float(len(c)) for c in completions]\n");
  runs.edit("{rule: regex, pattern: \"^[0-4]\"}", fmt::format("{{python: {}:score}}", reward));
  runs.edit("iterations: 4, save_every: 1", "iterations: 100000, save_every: 2");
  fs::create_directories(temporary);
  const base::Deadline deadline = base::Deadline::after(60);
  const auto run = start_run(runs, runs.directory("run"), deadline, {{"TMPDIR", temporary}});
  run->signal(SIGKILL);
  ASSERT_TRUE(run->wait(deadline));
  ASSERT_FALSE(lines_of(runs.directory("run") + "/metrics.jsonl").empty());
  EXPECT_TRUE(fs::is_empty(temporary)) << fs::directory_iterator(temporary)->path() << " is left";
}

// A run that has ended writes its model anew in another type: cut off at any moment, it has the one or the other.
TEST(Resume, AModelStaysUntilTheOtherIsWritten) {
  Runs runs("resume-export", "sft", "");
  ASSERT_NO_FATAL_FAILURE(runs.finish("run"));
  const std::string model = runs.directory("run") + "/model/model.safetensors", before = read_text(model);
  const std::vector<std::string> rounded = {"--set", "train.export_dtype=bfloat16"};
  const auto kill = [&](const std::string& place) {
    const host::CommandResult killed = runs.train("run", rounded, {{"COLLIMATE_TEST_KILL_AT", place}});
    EXPECT_EQ(killed.status.signal, SIGKILL) << place << ": " << killed.status.description() << killed.errors;
  };
  kill("directory.before_rename:1");
  EXPECT_TRUE(fs::exists(model) && read_text(model) == before) << "the old model is gone before the new one is there";
  ASSERT_NO_FATAL_FAILURE(runs.finish("run"));
  EXPECT_TRUE(read_text(model) == before) << "the config of before is still the run's";
  kill("directory.after_rename:1");
  EXPECT_LT(read_text(model).size(), before.size());
  ASSERT_NO_FATAL_FAILURE(runs.finish("run", rounded));
  EXPECT_LT(read_text(model).size(), before.size());
  EXPECT_NE(read_text(runs.directory("run") + "/config.resolved.yaml").find("bfloat16"), std::string::npos);
}

TEST(Resume, ASignalSavesAndEndsWith3AndTheRunGoesOn) {
  Runs runs("resume-signal", "sft", "");
  runs.edit("iterations: 4, save_every: 1", "iterations: 400");
  const std::string output = runs.directory("stopped");
  const base::Deadline deadline = base::Deadline::after(60);
  ASSERT_NO_FATAL_FAILURE(stop(*start_run(runs, output, deadline), deadline));
  EXPECT_FALSE(fs::is_empty(output + "/checkpoints"));

  ASSERT_NO_FATAL_FAILURE(runs.finish("stopped"));
  ASSERT_NO_FATAL_FAILURE(runs.finish("whole"));
  EXPECT_EQ(lasting_metrics(output), lasting_metrics(runs.directory("whole")));
  const std::string model = "/model/model.safetensors";
  EXPECT_TRUE(read_text(output + model) == read_text(runs.directory("whole") + model));
}

}  // namespace
}  // namespace collimate::test

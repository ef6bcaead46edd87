#include "collimate/flow/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/cluster/mailbox.h"
#include "collimate/cluster/reparse.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/flow/shared_store.h"
#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"
#include "tests/support/fault_control.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/graph/replay.h"
#include "tests/support/watched_messages.h"

namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

TEST(Executor, RunsEveryIteration) {
  Outcome outcome = plain();
  ASSERT_EQ(outcome.lines.size(), 3U);
  nlohmann::json last = nlohmann::json::parse(outcome.lines.back());
  EXPECT_EQ(last["iteration"], 2);
  EXPECT_EQ(last["reward.score uid"].size(), 12U);
  EXPECT_GT(last["train/weights"].get<double>(), 0);
}

// Three iterations of three nodes: a task is at least a start, a feed and a close, and its worker answers with rows and
// finished.
TEST(Executor, MessagesAndTextsReparsedGiveTheSame) {
  const test::WatchedMessages watched;
  const Outcome expected = plain();
  EXPECT_EQ(watched.specs(), 0);
  EXPECT_EQ(watched.of_driver(), 0);
  EXPECT_EQ(watched.of_workers(), 0);
  const base::Reparsing reparsing;
  EXPECT_EQ(expected, plain());
  EXPECT_EQ(watched.specs(), 2);  // the device's worker and the reward's
  EXPECT_GE(watched.of_driver(), 3 * 3 * 3);
  EXPECT_GE(watched.of_workers(), 3 * 3 * 2);
}

TEST(Executor, TwoDevicesGiveTheSame) {
  EXPECT_EQ(plain(), run_with([](RunOptions&) {}, Place::kApart));
  EXPECT_EQ(plain(), run_with([](RunOptions&) {}, Place::kBothOnTwo));
}

TEST(Executor, RanksWhoseWeightsPartAreAGuardError) {
  auto alone = [](RunOptions& options) { options.modules["trainer"] = {"trainer", {{"alone", true}}}; };
  EXPECT_THROW(run_with(alone, Place::kBothOnTwo), base::GuardError);
}

TEST(Executor, QueuesOfOneAndRandomDelaysDoNotLock) {
  // This reward is so slow that messages wait for it.
  auto slow_reward = [](RunOptions& options) { options.modules["reward"] = {"reward", {{"sleep_seconds", 0.005}}}; };
  const Outcome expected = plain();
  for (const Place place : {Place::kOneDevice, Place::kBothOnTwo}) {
    const test::WatchedMessages easy;
    EXPECT_EQ(expected, run_with(slow_reward, place));
    EXPECT_GT(easy.most_held(), 1);
    EXPECT_EQ(easy.delays(), 0);
    const test::WatchedMessages hard(1, 0.002);
    EXPECT_EQ(expected, run_with([](RunOptions&) {}, place));
    EXPECT_EQ(hard.most_held(), 1);
    EXPECT_GE(hard.delays(), 3 * 3 * 3);  // iterations, nodes, messages of a task
  }
}

TEST(Executor, WorkersAsProcessesGiveTheSame) {
  for (const Place place : {Place::kApart, Place::kBothOnTwo})
    EXPECT_EQ(plain(), run_with([](RunOptions& options) { options.transport = Transport::kProcesses; }, place));
}

// The toy policy finishes its first four rows, which are a group when their uids take equal steps, and nothing more
// before a reward has been called: without streaming by groups this would wait for ever.
TEST(Executor, RewardOfAGroupRunsWhileGenerationGoesOn) {
  toy::reward_calls = 0;
  Outcome outcome;
  RunOptions options = options_for(outcome, 1);
  options.deadline_seconds = 5;
  options.modules["policy"] = {"policy", {{"patient", true}}};
  options.next_rows = [](int64_t iteration, int64_t first, int64_t count) {
    Batch rows = toy::rows(iteration, first, count);
    std::vector<int64_t> uids;
    for (int64_t i = first; i < first + count; ++i) uids.push_back(3 * i);
    rows.set(batch::kUid, uids);
    return rows;
  };
  graph::Graph graph = toy::flow();
  Registry registry = toy::registry();
  run(graph, graph::flattening(graph, 1), registry, options);
  EXPECT_EQ(outcome.lines.size(), 1U);
  EXPECT_GE(toy::reward_calls, 2);
}

TEST(Executor, RecordedEventsReplayToTheRecordedActions) {
  std::string directory = temporary("events");
  run_with([&](RunOptions& options) { options.directory = directory; }, Place::kBothOnTwo);
  EXPECT_EQ(graph::check_recording(host::read_file(directory + "/events.jsonl")), "");
}

TEST(Executor, ARecordingIsOfTheResumedRunToo) {
  std::string directory = temporary("events-resumed"), elsewhere = temporary("events-elsewhere");
  Outcome outcome;
  graph::Graph graph = toy::flow();
  Registry registry = toy::registry();
  RunOptions options = options_for(outcome, 4);
  options.directory = directory;
  options.schedule.save_every = 1;
  run(graph, graph::flattening(graph, 1), registry, options);
  const std::string whole = host::read_file(directory + "/events.jsonl");
  const std::string middle = Checkpoints(directory).list().front();
  EXPECT_EQ(checkpoint_step(middle), 3);
  options.resume = middle;
  options.directory = elsewhere;
  run(graph, graph::flattening(graph, 1), registry, options);
  options.directory = directory;
  run(graph, graph::flattening(graph, 1), registry, options);
  for (const std::string& path : {directory, elsewhere}) {
    const std::string resumed = host::read_file(path + "/events.jsonl");
    EXPECT_EQ(graph::check_recording(resumed), "");
    size_t begins = 0;
    for (size_t at = resumed.find("\"begin\""); at != std::string::npos; at = resumed.find("\"begin\"", at + 1))
      ++begins;
    EXPECT_EQ(begins, 2U);
    const size_t cut = resumed.rfind("\n", resumed.rfind("\"begin\"")) + 1;
    EXPECT_EQ(resumed.substr(0, cut), whole.substr(0, cut));
    EXPECT_GT(cut, whole.size() / 2);
  }
}

TEST(Executor, AWorkersMemoryIsReportedAndHeldToItsBudget) {
  nlohmann::json workers;
  uint64_t checksum = 0;
  Outcome outcome;
  graph::Graph graph = toy::flow();
  Registry registry = toy::registry();
  RunOptions options = options_for(outcome);
  options.on_end = [&](const RunEnd& end) {
    workers = end.memory;
    checksum = end.checksums.at("policy");
  };
  options.exports = {{"policy", temporary("exported")}};
  double peak = 0;
  options.on_iteration = [&](const IterationResult& result) {
    peak = result.metrics.at("memory/peak_bytes/policy.generate").get<double>();
  };
  options.modules["policy"] = {"policy", {{"holds_bytes", 100000}}};
  run(graph, graph::flattening(graph, 1), registry, options);
  EXPECT_GE(peak, 100000);
  EXPECT_NE(checksum, 0U);
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].at("planned_bytes"), tensor::allocated_bytes(100000));
  EXPECT_EQ(workers[0].at("items")[0].at("item"), "numbers");
  EXPECT_EQ(workers[0].at("items")[0].at("peak_bytes"), tensor::allocated_bytes(100000));
  options.memory_budget_bytes = 50000;
  EXPECT_THROW(run(graph, graph::flattening(graph, 1), registry, options), base::InputError);
  options.modules["policy"].parameters["planned_bytes"] = 1000;
  const std::string error =
      base::message_of<base::RunError>([&] { run(graph, graph::flattening(graph, 1), registry, options); });
  EXPECT_THAT(error, testing::HasSubstr("[memory of worker 0] expected at most 48.8 KiB (run.memory_budget), got"));
  EXPECT_THAT(error, testing::HasSubstr("more for numbers"));
}

TEST(Executor, ResumeGoesOnAsTheUndisturbedRun) {
  std::string directory = temporary("resume");
  Outcome first;
  RunOptions options = options_for(first, 5);
  options.directory = directory;
  options.schedule.save_every = 2;
  graph::Graph graph = toy::flow();
  graph::Placement placement = graph::flattening(graph, 2);
  Registry registry = toy::registry();
  options.on_iteration = [&](const IterationResult& result) {
    if (result.iteration == 3) throw base::RunError("killed");
    first.lines.push_back(line_of(result));
  };
  EXPECT_THROW(run(graph, placement, registry, options), base::RunError);
  Checkpoints checkpoints(directory);
  EXPECT_EQ(checkpoint_step(checkpoints.latest()), 2);

  Outcome whole, rest;
  RunOptions again = options_for(whole, 5);
  again.schedule.save_every = 2;
  run(graph, placement, registry, again);
  again = options_for(rest, 5);
  again.schedule.save_every = 2;
  again.directory = directory;
  again.resume = checkpoints.latest();
  run(graph, placement, registry, again);
  ASSERT_EQ(whole.lines.size(), 5U);
  EXPECT_EQ(rest.lines, std::vector<std::string>(whole.lines.begin() + 2, whole.lines.end()));
  SharedStore values;
  load_state(values, checkpoints.latest() + "/store");
  EXPECT_EQ(values.all().size(), 2U) << "that of the iteration that was last and that of the next one";
}

// The disk takes until the next iteration is done.
TEST(Executor, TrainingGoesOnWhileACheckpointIsBroughtToTheDisk) {
  std::atomic<int64_t> done = 0, saved = 0, waited = 0;
  const base::CountAnswers slow_disk([&](std::string_view place, int64_t count) {
    if (place != "checkpoint.commit" || ++saved == 3) return count;  // nothing follows the third one
    const int64_t next = 2 * saved + 1;
    for (int i = 0; i < 2000 && done < next; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    waited += done >= next ? 1 : 0;
    return count;
  });
  const std::string directory = temporary("slow-disk");
  run_with([&](RunOptions& options) {
    options.directory = directory;
    options.schedule.save_every = 2;
    options.schedule.iterations = 5;
    options.on_iteration = [&](const IterationResult&) { ++done; };
  });
  EXPECT_EQ(waited, 2);
  EXPECT_EQ(checkpoint_step(Checkpoints(directory).latest()), 5);
}

TEST(Executor, ACheckpointThatDoesNotReachTheDiskEndsTheRun) {
  const std::string directory = temporary("lost-disk");
  const base::CountAnswers lose([&](std::string_view place, int64_t count) {
    if (place == "checkpoint.commit") std::filesystem::remove_all(directory + "/checkpoints/step-000002.partial");
    return count;
  });
  EXPECT_THROW(run_with([&](RunOptions& options) {
                 options.directory = directory;
                 options.schedule.save_every = 1;
                 options.schedule.iterations = 50;
               }),
               std::exception);
  EXPECT_EQ(checkpoint_step(Checkpoints(directory).latest()), 1);
}

// After the second iteration the state was the best one.
TEST(Executor, TheBestCheckpointIsExported) {
  const auto exported_by = [](int64_t iterations, Retention keep) {
    RunEnd ended;
    run_with([&](RunOptions& options) {
      options.schedule.iterations = iterations;
      options.schedule.save_every = 1;
      options.directory = temporary("best-run");
      options.keep = std::move(keep);
      options.exports = {{"trainer", temporary("best-model")}};
      options.on_end = [&](const RunEnd& end) { ended = end; };
    });
    return std::pair(ended.checksums.at("trainer"), ended.exported);
  };
  const auto value = [](int64_t step) { return std::optional(-std::abs(static_cast<double>(step - 2))); };
  const auto [best, from] = exported_by(4, {.newest = 1, .value = value});
  EXPECT_EQ(checkpoint_step(from), 2);
  EXPECT_EQ(best, exported_by(2, {}).first);
  EXPECT_NE(best, exported_by(4, {}).first);
  const auto unmeasured = exported_by(4, {.value = [](int64_t) { return std::optional<double>(); }});
  EXPECT_EQ(unmeasured, exported_by(4, {}));  // the last state, of which a warning tells
}

// At a checkpoint the next iteration has begun, of which a shorter run has none.
TEST(Executor, AShorterRunEndsAtItsCheckpointAndMayGoOn) {
  const std::string directory = temporary("shorter");
  const auto run_to = [&](int64_t iterations, const std::string& resume) {
    return run_with([&](RunOptions& options) {
             options.schedule.iterations = iterations;
             options.schedule.save_every = 1;
             options.directory = directory;
             options.keep.newest = 9;
             options.resume = resume;
           })
        .lines;
  };
  const std::vector<std::string> whole = run_to(4, "");
  const std::string second = Checkpoints(directory).list().at(1);
  EXPECT_TRUE(run_to(2, second).empty());
  EXPECT_EQ(run_to(3, second), std::vector<std::string>(whole.begin() + 2, whole.begin() + 3));
  EXPECT_EQ(run_to(4, Checkpoints(directory).list().at(2)), std::vector<std::string>(whole.begin() + 3, whole.end()));
}

// Killed in its fourth iteration, of which two are saved, and gone on with on other devices and transports. Its numbers
// are whole, so that sums over any ranks are equal.
TEST(Executor, AnotherPlacementGoesOnAsTheUndisturbedRun) {
  const auto whole = run_with([](RunOptions& options) { options.schedule.iterations = 5; }).lines;
  ASSERT_EQ(whole.size(), 5U);
  const graph::Graph graph = toy::flow();
  const std::vector<graph::Placement> placements = {graph::flattening(graph, 1), graph::flattening(graph, 2),
                                                    graph::flattening(graph, 3), graph::separation(graph, 2, 1)};
  Registry registry = toy::registry();
  for (size_t from = 0; from < placements.size(); ++from) {
    Outcome first;
    RunOptions options = options_for(first, 5);
    options.directory = temporary("moved");
    options.schedule.save_every = 2;
    options.on_iteration = [&](const IterationResult& result) {
      if (result.iteration == 3) throw base::RunError("killed");
    };
    EXPECT_THROW(run(graph, placements[from], registry, options), base::RunError);
    for (size_t to = 0; to < placements.size(); ++to) {
      Outcome rest;
      RunOptions again = options_for(rest, 5);
      again.schedule.save_every = 2;
      again.resume = Checkpoints(options.directory).latest();
      again.directory = temporary("moved-on");
      if (to == 1) again.transport = Transport::kProcesses;
      run(graph, placements[to], registry, again);
      EXPECT_EQ(rest.lines, std::vector<std::string>(whole.begin() + 2, whole.end())) << from << " to " << to;
      EXPECT_EQ(graph::check_recording(host::read_file(again.directory + "/events.jsonl")), "") << from << " to " << to;
    }
  }
}

TEST(Executor, RandomResultsAreReplayedFromTheJournal) {
  std::string directory = temporary("journal");
  graph::Graph graph = toy::flow(false);
  graph::Placement placement = graph::flattening(graph, 1);
  Registry registry = toy::registry();
  Outcome drawn, replayed, other;
  RunOptions options = options_for(drawn);
  options.modules["reward"] = {"reward", {{"random", true}}};
  options.directory = directory;
  run(graph, placement, registry, options);
  RunOptions again = options_for(replayed);
  again.modules = options.modules;
  again.replay = directory + "/journal.bin";
  run(graph, placement, registry, again);
  EXPECT_EQ(drawn, replayed);
  RunOptions fresh = options_for(other);
  fresh.modules = options.modules;
  run(graph, placement, registry, fresh);
  EXPECT_NE(drawn, other);
}

TEST(Executor, AStopSavesAndTheRunGoesOnFromThere) {
  std::string directory = temporary("stop");
  base::StopFlag stop;
  Outcome outcome;
  RunOptions options = options_for(outcome, 50);
  options.directory = directory;
  options.stop = &stop;
  options.on_iteration = [&](const IterationResult& result) {
    if (result.iteration == 1) stop.request();
  };
  graph::Graph graph = toy::flow();
  Registry registry = toy::registry();
  EXPECT_THROW(run(graph, graph::flattening(graph, 1), registry, options), base::StoppedError);
  const std::string saved = Checkpoints(directory).latest();
  const int64_t done = checkpoint_step(saved);
  ASSERT_GE(done, 2);
  ASSERT_LT(done, 50);

  Outcome whole, rest;
  run(graph, graph::flattening(graph, 1), registry, options_for(whole, 50));
  RunOptions again = options_for(rest, 50);
  again.directory = directory;
  again.resume = saved;
  run(graph, graph::flattening(graph, 1), registry, again);
  ASSERT_EQ(whole.lines.size(), 50U);
  EXPECT_EQ(rest.lines, std::vector<std::string>(whole.lines.begin() + done, whole.lines.end()));
}

// Generates 8 rows that no iteration has.
TEST(Executor, EvaluationRunsOnTheSameWorkers) {
  Outcome outcome;
  RunOptions options = options_for(outcome);
  options.schedule.evaluate_every = 2;
  options.schedule.evaluate_first = true;
  graph::Graph graph = toy::flow();
  Evaluation evaluation = generating_evaluation();
  std::vector<std::pair<int64_t, int32_t>> seen;  // (iteration, weights that generated)
  evaluation.on_result = [&](const IterationResult& result) {
    const Batch& rows = result.batches.at("policy.generate");
    EXPECT_EQ(rows.rows(), 8);
    seen.emplace_back(result.iteration, rows.row(batch::kIds, 0)[1]);
  };
  options.evaluations = {evaluation};
  Registry registry = toy::registry();
  run(graph, graph::flattening(graph, 1), registry, options);
  EXPECT_EQ(outcome, plain());
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0], std::make_pair(int64_t{-1}, 0));
  EXPECT_EQ(seen[1].first, 1);
  EXPECT_LT(seen[1].second, seen[2].second);
}

}  // namespace
}  // namespace collimate::flow

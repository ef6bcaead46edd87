#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "collimate/base/error.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/flow/executor.h"
#include "tests/support/base/error_of.h"
#include "tests/support/flow/toy_runs.h"
#include "tests/support/watched_messages.h"

// Runs whose functions are cut over tp: the ranks of a replica step, train and export together.
namespace collimate::flow {
namespace {

using namespace toy;  // NOLINT: test only

// Generation and training by two ranks of tp; on four devices by two replicas, and dp 2.
graph::Placement cut_in_two(const graph::Graph& graph, int devices) {
  graph::Placement placement = graph::flattening(graph, devices);
  for (const auto& [model, content] : graph.models)
    if (placement.group_of(model) != nullptr)
      for (const graph::FunctionSpec& function : content.functions) placement.layouts[model][function.name].tp = 2;
  return placement;
}

Outcome run_cut(const std::function<void(RunOptions&)>& change, int devices = 2, int64_t iterations = 3,
                const graph::Graph& graph = flow()) {
  Outcome outcome;
  RunOptions options = options_for(outcome, iterations);
  change(options);
  run(graph, cut_in_two(graph, devices), toy::registry(), options);
  return outcome;
}

void as_processes(RunOptions& options) { options.transport = Transport::kProcesses; }

TEST(ExecutorLines, RanksThatStepTogetherGiveWhatOneGives) {
  const Outcome expected = plain();
  for (const int devices : {2, 4}) {
    EXPECT_EQ(run_cut([](RunOptions&) {}, devices), expected) << devices;
    EXPECT_EQ(run_cut(as_processes, devices), expected) << devices;
    const test::WatchedMessages hard(1, 0.002);
    EXPECT_EQ(run_cut([](RunOptions&) {}, devices), expected) << devices;
  }
}

// Rows that are dropped are replaced while the stream runs, so that it is fed again and again.
TEST(ExecutorLines, FilteredGroupsAreReplaced) {
  const graph::Graph graph = filtered_flow();
  Outcome expected;
  const RunOptions options = options_for(expected, 4);
  run(graph, graph::flattening(graph, 1), toy::registry(), options);
  const test::WatchedMessages hard(2, 0.001);
  for (const int devices : {2, 4}) EXPECT_EQ(run_cut([](RunOptions&) {}, devices, 4, graph), expected) << devices;
}

// Messages of several iterations come to one worker.
TEST(ExecutorLines, StaleIterationsGiveWhatOneRankGives) {
  const graph::Graph graph = flow();
  const auto stale = [&](graph::Placement placement) {
    placement.staleness = 1;
    Outcome outcome;
    RunOptions options = options_for(outcome, 4);
    options.directory = temporary("stale");
    options.schedule.save_every = 1;
    run(graph, placement, toy::registry(), options);
    return outcome;
  };
  const test::WatchedMessages hard(1, 0.001);
  EXPECT_EQ(stale(cut_in_two(graph, 2)), stale(graph::flattening(graph, 1)));
}

// A flow whose policy has one more function, which only the evaluation calls.
struct DrawingFlow {
  graph::Graph graph;
  Evaluation evaluation;
};

DrawingFlow drawing_flow() {
  graph::FunctionSpec draw = generate_spec();
  draw.name = "draw";
  const graph::ModelHandle policy("policy", {generate_spec(), draw});
  DrawingFlow made{flow(), generating_evaluation()};
  made.graph.models["policy"].functions.push_back(draw);
  made.evaluation.graph = graph::trace([&](graph::Value prompts) { policy("draw", prompts); },
                                       {{"prompts", {"uid", "prompt_uid"}}}, "evaluation");
  return made;
}

// The run's graph calls `generate` alone.
TEST(ExecutorLines, AFunctionThatOnlyAnEvaluationCallsHasItsLines) {
  DrawingFlow made = drawing_flow();
  graph::Graph& graph = made.graph;
  Evaluation& evaluation = made.evaluation;
  int64_t rows = 0;
  evaluation.on_result = [&](const IterationResult& result) { rows += result.batches.at("policy.draw").rows(); };
  const auto evaluates = [&](RunOptions& options) {
    options.schedule.evaluate_every = 1;
    options.evaluations = {evaluation};
  };
  const test::WatchedMessages hard(1, 0.001);
  EXPECT_EQ(run_cut(evaluates, 4, 3, graph), plain());
  EXPECT_EQ(rows, 3 * 8);
}

TEST(ExecutorLines, AFailureElsewhereEndsStreamsInTheirSteps) {
  const test::WatchedMessages hard(0, 0.002);
  for (const int devices : {2, 4})
    EXPECT_EQ(
        base::message_of<base::GuardError>([&] {
          run_cut([](RunOptions& options) { options.modules["reward"] = {"reward", {{"fail_at", 2037}}}; }, devices);
        }),
        fmt::format("[toy reward] sample 2037 is bad (model reward, worker {}, iteration 2, node reward.score)",
                    devices));
}

// By the driver's thread, which says nothing to the workers but that the run is over.
TEST(ExecutorLines, AnErrorOfACallbackEndsStreamsInTheirSteps) {
  const auto throws = [](RunOptions& options) {
    options.next_rows = [](int64_t iteration, int64_t first, int64_t count) {
      if (first > 0) throw base::InputError("[test] no more rows");
      return toy::rows(iteration, first, count);
    };
  };
  EXPECT_EQ(base::message_of([&] { run_cut(throws, 2, 4, filtered_flow()); }), "[test] no more rows");
}

TEST(ExecutorLines, AFailureOfOneRankIsTheRuns) {
  for (const Transport transport : {Transport::kThreads, Transport::kProcesses})
    for (const int worker : {0, 1})
      EXPECT_EQ(base::message_of<base::GuardError>([&] {
                  run_cut([&](RunOptions& options) {
                    options.transport = transport;
                    options.deadline_seconds = 1e6;
                    options.modules["policy"] = {"policy", {{"fails_on", worker}}};
                  });
                }),
                fmt::format("[toy policy] worker {0} has had enough (model policy, worker {0}, iteration 2, node "
                            "policy.generate)",
                            worker));
}

// Nobody could join the groups of one that is started again.
TEST(ExecutorLines, ALostRankEndsTheRun) {
  const std::string error = base::message_of<base::RunError>([] {
    run_cut([](RunOptions& options) {
      as_processes(options);
      options.deadline_seconds = 1e6;
      options.modules["policy"] = {"policy", {{"dies_on", 1}}};
    });
  });
  EXPECT_THAT(error, testing::AnyOf(testing::HasSubstr("[worker 1] the worker process ended with signal 9 (Killed)"),
                                    testing::ContainsRegex("the process of rank 1 \\([0-9]+\\) has ended")));
}

TEST(ExecutorLines, AStopSavesAndTheRunGoesOnFromThere) {
  const std::string directory = temporary("lines-stop");
  base::StopFlag stop;
  const auto stops = [&](RunOptions& options) {
    options.directory = directory;
    options.stop = &stop;
    options.on_poll = [&stop, polls = 0]() mutable {
      if (++polls == 20) stop.request();
    };
  };
  const test::WatchedMessages hard(0, 0.001);
  EXPECT_THROW(run_cut(stops, 2, 500), base::StoppedError);
  const std::string saved = Checkpoints(directory).latest();
  const int64_t done = checkpoint_step(saved);
  ASSERT_LT(done, 490);
  const Outcome rest = run_cut(
      [&](RunOptions& options) {
        options.directory = directory;
        options.resume = saved;
      },
      2, done + 3);
  Outcome whole;
  const graph::Graph graph = flow();
  run(graph, graph::flattening(graph, 1), toy::registry(), options_for(whole, done + 3));
  EXPECT_EQ(rest.lines, std::vector<std::string>(whole.lines.begin() + done, whole.lines.end()));
}

TEST(ExecutorLines, RanksOfOnePartThatPartAreAGuardError) {
  const auto alone = [](RunOptions& options) { options.modules["trainer"] = {"trainer", {{"alone", true}}}; };
  EXPECT_EQ(run_cut(alone, 2), plain()) << "where dp is 1";
  EXPECT_THROW(run_cut(alone, 4), base::GuardError);
}

// Gives what each of the ranks that hold the trainer between them wrote: how many they are.
std::map<std::string, std::string> exported(int devices, const std::function<void(RunOptions&)>& change) {
  const std::string directory = temporary("lines-export");
  uint64_t checksum = 0;
  run_cut(
      [&](RunOptions& options) {
        options.exports = {{"trainer", directory}};
        options.on_end = [&](const RunEnd& end) { checksum = end.checksums.at("trainer"); };
        change(options);
      },
      devices);
  EXPECT_NE(checksum, 0U);
  std::map<std::string, std::string> written;
  for (const auto& file : std::filesystem::directory_iterator(directory))
    std::getline(std::ifstream(file.path()), written[file.path().filename()]);
  return written;
}

TEST(ExecutorLines, TheRanksThatHoldAModelExportItTogether) {
  const std::map<std::string, std::string> both = {{"worker-0", "2"}, {"worker-1", "2"}};
  EXPECT_EQ(exported(2, [](RunOptions&) {}), both);
  EXPECT_EQ(exported(4, as_processes), both);
}

std::string refused(const graph::Graph& graph, const graph::Placement& placement,
                    const std::vector<Evaluation>& evaluations = {}) {
  Outcome outcome;
  RunOptions options = options_for(outcome, 1);
  options.evaluations = evaluations;
  return base::message_of<base::InputError>([&] { run(graph, placement, toy::registry(), options); });
}

// Both are two ranks of tp everywhere, and each worker is at the same place of its line.
TEST(ExecutorLines, AWeightLinkBetweenDifferentLinesIsRefused) {
  const graph::Graph graph = flow();
  graph::Placement placement = cut_in_two(graph, 4);
  placement.groups = {{"a", {{0, 1, 2, 3}, {"trainer"}}}, {"b", {{0, 3, 2, 1}, {"policy"}}}};
  EXPECT_EQ(refused(graph, placement),
            "[weights trainer -> policy] expected the same part of the weights of both on worker 0, got trainer.train "
            "with tp 2 (workers 0, 1), pp 1, ep 1, zero 0 and policy.generate with tp 2 (workers 0, 3), pp 1, ep 1, "
            "zero 0; try one layout for both, or layouts of dp alone");
}

TEST(ExecutorLines, FunctionsOfOneModelThatAreCutDifferentlyAreRefused) {
  DrawingFlow made = drawing_flow();
  graph::Graph& graph = made.graph;
  Evaluation& evaluation = made.evaluation;
  graph::Placement placement = cut_in_two(graph, 2);
  placement.layouts["policy"].erase("draw");
  EXPECT_EQ(refused(graph, placement), "") << "nobody calls it";
  EXPECT_EQ(refused(graph, placement, {evaluation}),
            "[placement.layouts.policy] expected one tp for all functions of the model, whose weights they share, got "
            "generate with tp 2 and draw with tp 1; try the same tp for both");
}

}  // namespace
}  // namespace collimate::flow

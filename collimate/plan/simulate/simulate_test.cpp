#include "collimate/plan/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "collimate/base/philox.h"
#include "collimate/graph/forms.h"
#include "tests/support/graph/replay.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::plan {
namespace {

using graph::Event;
using graph::Graph;
using graph::Placement;
using graph::ScheduleOptions;

Placement two_sides(const Graph& graph) {
  Placement placement;
  placement.devices = 2;
  placement.groups["main"] = {{0}, {"policy", "trainer"}};
  placement.groups["side"] = {{1}, {}};
  for (const auto& [name, model] : graph.models) {
    if (name == "value") placement.groups["main"].models.push_back(name);
    if (name == "reference" || name == "reward") placement.groups["side"].models.push_back(name);
  }
  return placement;
}

const TaskSpan& span_of(const Graph& graph, const Simulation& simulation, const std::string& id) {
  for (const TaskSpan& span : simulation.spans)
    if (graph.node(span.task.node).id == id) return span;
  throw std::runtime_error("no span of " + id);
}

TEST(Simulate, AFlatPlacementIsTheSumAndTwoDevicesOverlap) {
  const Graph graph = graph::samples::ppo();
  const ScheduleOptions options{.iterations = 1, .rows = 8, .group_size = 2};
  Simulation flat = simulate(graph, flattening(graph, 1), options);
  ASSERT_TRUE(flat.stopped);
  Simulation apart = simulate(graph, two_sides(graph), options);
  ASSERT_TRUE(apart.stopped);
  EXPECT_LT(apart.seconds, flat.seconds);
  EXPECT_LT(span_of(graph, apart, "reference.log_probs").begin_seconds,
            span_of(graph, apart, "value.values").end_seconds);
  EXPECT_GE(span_of(graph, flat, "reference.log_probs").begin_seconds,
            span_of(graph, flat, "policy.generate").end_seconds);
}

// The tasks are on eight devices in three iterations, which overlap.
TEST(Simulate, ASpanEndsWhereItsTaskDoes) {
  const Graph graph = graph::samples::grpo();
  const ScheduleOptions options{.iterations = 3, .rows = 64, .staleness = 1};
  const Simulation simulation = simulate(graph, separation(graph, 8, 4), options);
  ASSERT_TRUE(simulation.stopped);
  std::map<graph::Task, double> ends;
  for (size_t i = 0; i < simulation.steps.size(); ++i)
    if (simulation.steps[i].event.kind == graph::EventKind::kFinished)
      ends[simulation.steps[i].event.task] = simulation.times[i];
  ASSERT_EQ(simulation.spans.size(), ends.size());
  for (const TaskSpan& span : simulation.spans) {
    EXPECT_EQ(span.end_seconds, ends.at(span.task)) << graph::describe(graph, span.task);
    EXPECT_GT(span.end_seconds, span.begin_seconds);
  }
}

// Eight rows, of which four are there after 4 s of 10, the next two after 6, one after 8; each call of the reference on
// the other device costs 1 s and half a second a row: 4-7, 7-9 (two rows), 9-10.5, 10.5-12.
TEST(Simulate, AScorerElsewhereWorksWhileRowsAreDrawn) {
  const Graph graph = graph::samples::ppo();
  Predictions predictions;
  const int generate = graph.node_index("policy.generate"), score = graph.node_index("reference.log_probs");
  ASSERT_GE(std::min(generate, score), 0);
  predictions.seconds = [=](const graph::Task& task, int64_t rows) {
    if (task.node == generate) return 10.0;
    return task.node == score ? 1 + 0.5 * static_cast<double>(rows) : 0;
  };
  predictions.finish = [](const graph::Task&, int64_t row) {
    return row < 4 ? 0.4 : row < 6 ? 0.6 : row < 7 ? 0.8 : 1;
  };
  const ScheduleOptions options{.iterations = 1, .rows = 8};
  const TaskSpan apart = span_of(graph, simulate(graph, two_sides(graph), options, predictions), "reference.log_probs");
  using testing::DoubleEq;
  using testing::Pair;
  const double begin = apart.begin_seconds - 4;
  EXPECT_THAT(apart.calls, testing::ElementsAre(Pair(DoubleEq(begin + 4), DoubleEq(begin + 7)),
                                                Pair(DoubleEq(begin + 7), DoubleEq(begin + 9)),
                                                Pair(DoubleEq(begin + 9), DoubleEq(begin + 10.5)),
                                                Pair(DoubleEq(begin + 10.5), DoubleEq(begin + 12))));
  EXPECT_DOUBLE_EQ(apart.end_seconds, begin + 12);
  // On one device it waits, and takes all rows in one call.
  const TaskSpan together =
      span_of(graph, simulate(graph, flattening(graph, 1), options, predictions), "reference.log_probs");
  EXPECT_EQ(together.calls.size(), 1U);
  EXPECT_DOUBLE_EQ(together.end_seconds - together.begin_seconds, 5);
}

TEST(Simulate, StalenessHidesTraining) {
  const Graph graph = graph::samples::grpo();
  Placement placement = separation(graph, 2, 1);
  ScheduleOptions options{.iterations = 6, .rows = 4, .staleness = 0};
  const double synchronous = simulate(graph, placement, options).seconds;
  options.staleness = 1;
  const double ahead = simulate(graph, placement, options).seconds;
  EXPECT_LT(ahead, synchronous);
}

TEST(Simulate, ARecordingReplays) {
  const Graph graph = graph::samples::grpo(true);
  const Placement placement = flattening(graph, 1);
  const ScheduleOptions options{.iterations = 2, .rows = 4, .group_size = 2};
  Predictions predictions;
  predictions.drops = [](const graph::Task& task, int64_t first) { return task.iteration == 0 && first < 4; };
  const Simulation simulation = simulate(graph, placement, options, predictions);
  std::string recording = graph::recording_header({graph, placement, options});
  for (const graph::Step& step : simulation.steps) recording += recording_line(step.event, step.actions);
  EXPECT_EQ(graph::check_recording(recording), "");
  recording.replace(recording.find("\"count\":4"), 9, "\"count\":2");
  EXPECT_THAT(graph::check_recording(recording), testing::HasSubstr("was recorded as"));
}

// 1,024 samples that finish one by one, as generation gives them.
TEST(Simulate, ALongRecordingIsShortAndReplays) {
  const Graph graph = graph::samples::grpo();
  const Placement placement = separation(graph, 2, 1);
  const ScheduleOptions options{.iterations = 2, .rows = 1024, .group_size = 1};
  const Simulation simulation = simulate(graph, placement, options);
  std::string plain = graph::recording_header({graph, placement, options}), compact = plain;
  graph::RecordingWriter writer;
  for (const graph::Step& step : simulation.steps) {
    plain += recording_line(step.event, step.actions);
    compact += writer.step(step.event, step.actions);
  }
  compact += writer.flush();
  EXPECT_GT(simulation.steps.size(), 2048U);
  EXPECT_EQ(graph::check_recording(compact), "");
  EXPECT_LT(compact.size(), plain.size() / 8);
  const size_t to = compact.find("\"to\":[[0,1,0,0]]");
  ASSERT_NE(to, std::string::npos);
  compact.replace(to, 16, "\"to\":[[0,1,0,3]]");
  EXPECT_THAT(graph::check_recording(compact), testing::HasSubstr("was recorded as"));
}

}  // namespace
}  // namespace collimate::plan

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "collimate/graph/schedule.h"
#include "tests/support/base/error_of.h"
#include "tests/support/graph/sample_graphs.h"

// Rows that a function drops without others in their place, until an iteration has none.
namespace collimate::graph {
namespace {

using testing::ElementsAre;

Graph thinned_graph() {
  ModelHandle policy("policy", {samples::generate()}), trainer("trainer", {samples::train({"advantages"})});
  ModelHandle keep = host_function(samples::host("keep", Granularity::kGroup, {"ids"}, "kept"));
  ModelHandle advantages =
      host_function(samples::host("advantages", Granularity::kIteration, {"kept"}, "advantages:f32"));
  return trace(
      [&](Value prompts) {
        trainer.train(advantages(keep(policy("generate", prompts))));
        link(trainer, policy, every(1));
      },
      samples::prompts(), "thinned");
}

// Answers all that the schedule of a graph asks for. The node `keep` drops all rows of the iterations in `empty`.
class ThinnedRun {
 public:
  ThinnedRun(const ScheduleOptions& options, std::set<int64_t> empty)
      : graph_(thinned_graph()), empty_(std::move(empty)), schedule_(graph_, flattening(graph_, 1), options) {
    events_.push_back(Event::begin());
    while (!events_.empty() && !schedule_.stopped()) {
      const Event event = events_.front();
      events_.pop_front();
      const auto given = schedule_.on(event);
      for (const Action& action : std::vector<Action>(given.begin(), given.end())) answer(action);
    }
  }
  const std::vector<std::string>& calls() const { return calls_; }
  const Action& end() const { return end_; }
  std::string waiting() const { return schedule_.waiting(); }

 private:
  void answer(const Action& action) {
    const Task& task = action.task;
    switch (action.kind) {
      case ActionKind::kStart:
        calls_.push_back(fmt::format("{} {}", task.iteration, graph_.node(task.node).id));
        return;
      case ActionKind::kFeed:
        events_.push_back(graph_.node(task.node).id == "keep" && empty_.contains(task.iteration)
                              ? Event::dropped(task, action.first, action.count)
                              : Event::rows(task, action.first, action.count));
        return;
      case ActionKind::kClose:
        events_.push_back(Event::finished(task));
        return;
      case ActionKind::kTransition:
        events_.push_back(Event::weights_at(action.model, action.version, action.worker));
        return;
      case ActionKind::kStop:
        end_ = action;
        return;
      default:
        return;
    }
  }

  const Graph graph_;
  const std::set<int64_t> empty_;
  Schedule schedule_;
  std::deque<Event> events_;
  std::vector<std::string> calls_;
  Action end_;
};

TEST(ScheduleRows, AnIterationMayBeEmptyWhereTheOptionsSaySo) {
  const ThinnedRun run({.iterations = 3, .rows = 2, .staleness = 0, .may_be_empty = true}, {0, 2});
  EXPECT_EQ(run.end().stop, StopKind::kDone) << run.end().cause << run.waiting();
  EXPECT_THAT(run.calls(), ElementsAre("0 policy.generate", "0 keep", "1 policy.generate", "1 keep", "1 advantages",
                                       "1 trainer.train", "2 policy.generate", "2 keep"));
}

TEST(ScheduleRows, OtherwiseItStopsTheRun) {
  const ThinnedRun run({.iterations = 3, .rows = 2, .staleness = 0}, {1});
  EXPECT_EQ(run.end().stop, StopKind::kFailed);
  EXPECT_THAT(run.end().cause,
              testing::HasSubstr("[iteration 2] expected rows for advantages, got none: all 2 were dropped"));
}

// With staleness, an iteration without rows would count as trained ahead of one that still draws.
TEST(ScheduleRows, IterationsThatMayBeEmptyFollowEachOther) {
  const Graph graph = thinned_graph();
  EXPECT_EQ(base::message_of(
                [&] { Schedule(graph, flattening(graph, 1), {.rows = 2, .staleness = 1, .may_be_empty = true}); }),
            "[schedule.staleness] expected 0 where iterations may be empty, got 1");
}

}  // namespace
}  // namespace collimate::graph

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "collimate/base/memory_state.h"
#include "tests/support/base/rounds.h"
#include "tests/support/graph/replay.h"
#include "tests/support/plan/simulate/random_flow.h"

namespace collimate::plan {
namespace {

using graph::Action;
using graph::ActionKind;
using graph::Event;
using graph::EventKind;
using graph::Task;

// Checks a simulated run from its recording alone.
class Observer {
 public:
  Observer(const graph::Graph& graph, const graph::ScheduleOptions& options) : graph_(graph), options_(options) {}

  void watch(const graph::Step& step) {
    on(step.event);
    for (const Action& action : step.actions) on(action);
  }

  // The process is gone, and with it all that ran.
  void restart() {
    busy_.clear();
    tasks_.clear();
    lost_.clear();
    whole_fed_.clear();
  }

  // The filters have left as many rows as wanted, and each went through every node.
  void finish() {
    for (int64_t i = 0; i < options_.iterations; ++i) {
      std::set<int64_t> kept = done_[{i, 0}];
      for (int64_t row : dropped_[i]) kept.erase(row);
      EXPECT_LE(kept.size(), static_cast<size_t>(options_.rows));
      EXPECT_GT(kept.size() + static_cast<size_t>(options_.group_size), static_cast<size_t>(options_.rows));
      for (int n = 0; n < static_cast<int>(graph_.nodes.size()); ++n) {
        const std::set<int64_t>& rows = done_[{i, n}];
        const bool all = std::includes(rows.begin(), rows.end(), kept.begin(), kept.end());
        EXPECT_TRUE(all) << graph_.node(n).id;
      }
    }
    EXPECT_TRUE(busy_.empty());
  }

 private:
  void on(const Event& event) {
    if (event.kind == EventKind::kLost) {
      lost_.insert(event.worker);
      std::erase_if(tasks_, [&](const auto& entry) { return entry.second.count(event.worker) > 0; });
      std::erase_if(busy_, [&](const auto& entry) { return tasks_.count(entry.second) == 0; });
    }
    if (event.kind == EventKind::kBack) lost_.erase(event.worker);
    if (!tasks_.count(event.task)) return;
    if (event.kind == EventKind::kRows && !whole(event.task.node)) rows_out(event.task, event.first, event.count);
    if (event.kind == EventKind::kFinished && whole(event.task.node))
      for (const Action& fed : whole_fed_[event.task]) rows_out(event.task, fed.first, fed.count);
    if (event.kind == EventKind::kDropped)
      for (int64_t row = event.first; row < event.first + event.count; ++row)
        dropped_[event.task.iteration].insert(row);
    if (event.kind == EventKind::kFinished || event.kind == EventKind::kFailed) release(event);
  }
  bool whole(int node) const { return graph_.spec(node).granularity == graph::Granularity::kIteration; }
  void rows_out(const Task& task, int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const bool fresh = done_[{task.iteration, task.node}].insert(row).second;
      EXPECT_TRUE(fresh) << "row " << row << " twice in " << describe(graph_, task);
    }
  }
  void release(const Event& event) {
    for (int worker : tasks_[event.task]) busy_.erase(worker);
    tasks_.erase(event.task);
  }
  void on(const Action& action) {
    if (action.kind == ActionKind::kCancel) return;
    if (action.kind == ActionKind::kFeed) return feed(action);
    if (action.kind != ActionKind::kStart) return;
    for (int worker : action.workers) {
      EXPECT_FALSE(lost_.count(worker)) << describe(graph_, action) << " while it is lost";
      EXPECT_FALSE(busy_.count(worker)) << describe(graph_, action) << " while it runs something";
      busy_[worker] = action.task;
      tasks_[action.task].insert(worker);
    }
  }
  // A row is fed only when every producer has it.
  void feed(const Action& action) {
    if (whole(action.task.node)) whole_fed_[action.task].push_back(action);
    for (const std::string& value : graph_.node(action.task.node).inputs) {
      const int producer = graph_.producer(value);
      for (int64_t row = action.first; producer >= 0 && row < action.first + action.count; ++row)
        EXPECT_EQ(done_[std::pair(action.task.iteration, producer)].count(row), 1u) << describe(graph_, action);
    }
  }

  const graph::Graph& graph_;
  const graph::ScheduleOptions& options_;
  std::map<int, Task> busy_;
  std::map<Task, std::set<int>> tasks_;
  std::set<int> lost_;
  std::map<Task, std::vector<Action>> whole_fed_;
  std::map<std::pair<int64_t, int>, std::set<int64_t>> done_;
  std::map<int64_t, std::set<int64_t>> dropped_;
};

struct Flow {
  graph::Graph graph;
  graph::Placement placement;
  graph::ScheduleOptions options;
  Predictions predictions;

  explicit Flow(uint64_t seed) {
    random_flow::Dice dice(seed);
    graph = random_flow::make_graph(dice);
    placement = random_flow::make_placement(graph, dice);
    options = random_flow::make_options(dice);
    predictions = random_flow::make_predictions(seed, 4);
  }
};

void check(const Flow& flow, uint64_t seed) {
  const Simulation simulation = simulate(flow.graph, flow.placement, flow.options, flow.predictions);
  const std::string story = "seed " + std::to_string(seed) + "\n" + yaml_text(flow.placement);
  ASSERT_TRUE(simulation.stopped) << story << trace_text(flow.graph, simulation.steps) << simulation.waiting;
  ASSERT_EQ(simulation.steps.back().actions.back().stop, graph::StopKind::kDone)
      << story << simulation.steps.back().actions.back().cause;
  Observer observer(flow.graph, flow.options);
  for (const graph::Step& step : simulation.steps) observer.watch(step);
  observer.finish();
  ASSERT_FALSE(testing::Test::HasFailure()) << story << trace_text(flow.graph, simulation.steps);
}

const uint64_t kSeeds =
    std::getenv("COLLIMATE_SEEDS") ? std::strtoull(std::getenv("COLLIMATE_SEEDS"), nullptr, 10) : base::rounds(1000);

TEST(ScheduleProperties, RandomFlowsFinishAndDoEachRowOnceOnFreeWorkers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    check(Flow(seed), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ScheduleProperties, RandomFlowsFinishWhenWorkersAreLostAndBack) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Flow flow(seed);
    random_flow::Dice dice(seed + 77777);
    for (int i = 0; i < 3; ++i) {
      const double when = 1 + dice.below(60) + 0.5;
      const int worker = dice.below(worker_count(flow.graph, flow.placement));
      flow.predictions.outside.emplace_back(when, Event::lost(worker, "gone"));
      flow.predictions.outside.emplace_back(when + 1 + dice.below(20), Event::back(worker));
    }
    check(flow, seed);
    if (HasFatalFailure()) return;
  }
}

// A schedule saved and loaded, or copied, in the middle goes on as the one that was not.
TEST(ScheduleProperties, SavedAndLoadedAtEveryEventItGoesOnTheSame) {
  for (uint64_t seed = 0; seed < base::rounds(40); ++seed) {
    const Flow flow(seed);
    graph::Schedule schedule(flow.graph, flow.placement, flow.options);
    for (const graph::Step& step : simulate(flow.graph, flow.placement, flow.options, flow.predictions).steps) {
      base::MemoryState memory;
      schedule.save(memory);
      graph::Schedule loaded(flow.graph, flow.placement, flow.options);
      loaded.load(memory);
      const std::span<const Action> actions = loaded.on(step.event);
      ASSERT_EQ(std::vector<Action>(actions.begin(), actions.end()), step.actions) << "seed " << seed;
      schedule = loaded;
    }
  }
}

TEST(ScheduleProperties, InANewProcessItGoesOnFromTheSavedStateAndRepeatsNoRow) {
  for (uint64_t seed = 0; seed < kSeeds / 4; ++seed) {
    const Flow flow(seed);
    const std::vector<graph::Step> steps = simulate(flow.graph, flow.placement, flow.options, flow.predictions).steps;
    const size_t until = 1 + static_cast<size_t>(random_flow::Dice(seed).below(static_cast<int>(steps.size()) - 1));
    graph::Schedule schedule(flow.graph, flow.placement, flow.options), loaded = schedule;
    Observer observer(flow.graph, flow.options);
    for (size_t i = 0; i < until; ++i) {
      schedule.on(steps[i].event);
      observer.watch(steps[i]);
    }
    base::MemoryState memory;
    schedule.save(memory);
    loaded.load(memory);
    observer.restart();
    const Simulation rest = simulate_from(loaded, flow.graph, flow.options, flow.predictions);
    ASSERT_TRUE(rest.stopped) << "seed " << seed << "\n" << rest.waiting;
    for (const graph::Step& step : rest.steps) observer.watch(step);
    observer.finish();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " until " << until << "\n" << trace_text(flow.graph, rest.steps);
  }
}

TEST(ScheduleProperties, RandomFlowsFinishWhenTasksFail) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Flow flow(seed);
    random_flow::Dice dice(seed + 5555);
    flow.options.retries = 1000;
    for (int i = 0; i < 40; ++i) {
      const Task task{dice.below(static_cast<int>(flow.options.iterations)),
                      dice.below(static_cast<int>(flow.graph.nodes.size())), dice.below(2), dice.below(3)};
      flow.predictions.outside.emplace_back(dice.below(150) + 0.5, Event::failed(task, true, "flaky"));
    }
    check(flow, seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace collimate::plan

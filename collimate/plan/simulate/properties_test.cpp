#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "collimate/base/error.h"
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

struct Flow {
  std::vector<graph::EvaluationGraph> evaluations;
  graph::Graph graph;  // with the evaluations' models
  graph::Placement placement;
  graph::ScheduleOptions options;
  Predictions predictions;
  graph::DeviceMemory memory;

  explicit Flow(uint64_t seed) {
    random_flow::Dice dice(seed);
    graph = random_flow::make_graph(dice);
    evaluations = random_flow::make_evaluations(graph, dice);
    graph = graph::with_models_of(graph, evaluations);
    placement = random_flow::make_placement(graph, dice);
    options = random_flow::make_options(dice);
    predictions = random_flow::make_predictions(seed, 4);
  }
  graph::NamedGraphs graphs() const { return {graph, evaluations}; }
  graph::Schedule schedule() const { return graph::Schedule(graph, placement, options, evaluations, memory); }
  Simulation simulated() const { return simulate_from(schedule(), graphs(), options, predictions); }

  // Models get sizes, and devices a budget a little above the least that is not refused.
  void give_memory(random_flow::Dice& dice) {
    for (const auto& [model, content] : graph.models)
      for (int worker : workers_of(graph, placement, model))
        memory.items[worker][model] = {{model, 1 + dice.below(5)}, {"shared", dice.below(3)}};
    for (memory.budget_bytes = 1; refused(); ++memory.budget_bytes) continue;
    memory.budget_bytes += dice.below(6);
  }

 private:
  bool refused() const {
    try {
      schedule();
      return false;
    } catch (const base::InputError&) {
      return true;
    }
  }
};

// Checks a simulated run from its recording alone.
class Observer {
 public:
  explicit Observer(const Flow& flow) : flow_(flow), graphs_(flow.graphs()), options_(flow.options) {}

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
    there_.clear();
    held_.clear();
    for (const auto& [graph, iteration] : evaluating_)
      std::erase_if(done_, [&, of = graph](const auto& entry) { return std::get<0>(entry.first) == of; });
    evaluating_.clear();
  }

  // The filters have left as many rows as wanted, and each went through every node.
  void finish() {
    for (int64_t i = 0; i < options_.iterations; ++i) {
      std::set<int64_t> kept = done_[{0, i, 0}];
      for (int64_t row : dropped_[i]) kept.erase(row);
      EXPECT_LE(kept.size(), static_cast<size_t>(options_.rows));
      EXPECT_GT(kept.size() + static_cast<size_t>(options_.group_size), static_cast<size_t>(options_.rows));
      for (int n = 0; n < static_cast<int>(flow_.graph.nodes.size()); ++n) {
        const std::set<int64_t>& rows = done_[{0, i, n}];
        const bool all = std::includes(rows.begin(), rows.end(), kept.begin(), kept.end());
        EXPECT_TRUE(all) << flow_.graph.node(n).id;
      }
    }
    EXPECT_TRUE(busy_.empty());
    EXPECT_EQ(evaluated_, wanted_evaluations());
    EXPECT_TRUE(evaluating_.empty());
  }

 private:
  using Passes = std::set<std::pair<int, int64_t>>;  // graph and iteration
  Passes wanted_evaluations() const {
    Passes wanted;
    for (size_t e = 0; e < flow_.evaluations.size(); ++e) {
      const graph::EvaluationGraph& evaluation = flow_.evaluations[e];
      const int64_t every = evaluation.every.value_or(options_.evaluate_every);
      if (evaluation.first.value_or(options_.evaluate_first)) wanted.emplace(e + 1, -1);
      for (int64_t i = 0; every > 0 && i < options_.iterations; ++i)
        if ((i + 1) % every == 0 || i + 1 == options_.iterations) wanted.emplace(e + 1, i);
    }
    return wanted;
  }

  void on(const Event& event) {
    if (event.kind == EventKind::kResident) {
      const bool moved = event.resident ? there_[event.worker].insert(event.model).second
                                        : there_[event.worker].erase(event.model) == 1;
      if (!event.resident) held_[event.worker].erase(event.model);
      EXPECT_TRUE(moved || ever_lost_.count(event.worker)) << event.model << " was there, or was not";
    }
    if (event.kind == EventKind::kLost) {
      lost_.insert(event.worker);
      ever_lost_.insert(event.worker);
      there_.erase(event.worker);
      held_.erase(event.worker);
      std::erase_if(tasks_, [&](const auto& entry) { return entry.second.count(event.worker) > 0; });
      std::erase_if(busy_, [&](const auto& entry) { return tasks_.count(entry.second) == 0; });
    }
    if (event.kind == EventKind::kBack) lost_.erase(event.worker);
    if (!tasks_.count(event.task)) return;
    if (event.kind == EventKind::kRows && !whole(event.task)) rows_out(event.task, event.first, event.count);
    if (event.kind == EventKind::kFinished && whole(event.task))
      for (const Action& fed : whole_fed_[event.task]) rows_out(event.task, fed.first, fed.count);
    if (event.kind == EventKind::kDropped)
      for (int64_t row = event.first; row < event.first + event.count; ++row)
        dropped_[event.task.iteration].insert(row);
    if (event.kind == EventKind::kFinished || event.kind == EventKind::kFailed) release(event);
  }
  const graph::Graph& graph_of(const Task& task) const { return graphs_.of(task.graph); }
  bool whole(const Task& task) const {
    return graph_of(task).spec(task.node).granularity == graph::Granularity::kIteration;
  }
  void rows_out(const Task& task, int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const bool fresh = done_[{task.graph, task.iteration, task.node}].insert(row).second;
      EXPECT_TRUE(fresh) << "row " << row << " twice in " << describe(graphs_, task);
    }
  }
  void release(const Event& event) {
    for (int worker : tasks_[event.task]) busy_.erase(worker);
    tasks_.erase(event.task);
  }
  void on(const Action& action) {
    if (action.kind == ActionKind::kCancel) return;
    if (action.kind == ActionKind::kFeed) return feed(action);
    if (action.kind == ActionKind::kTransition && action.transition == graph::TransitionKind::kLoad)
      expect_room(action);
    if (action.kind == ActionKind::kSaveModel) expect_there({action.model}, alive(action.model), action);
    if (action.kind == ActionKind::kTransition && action.transition == graph::TransitionKind::kWeights)
      for (const std::string& model : {action.source, action.model})
        for (int worker : model == action.model && action.worker >= 0 ? std::vector{action.worker} : alive(model))
          expect_on(model, worker, action);
    if (action.kind == ActionKind::kEvaluated) {
      evaluated_.emplace(action.graph, action.iteration);
      evaluating_.erase({action.graph, action.iteration});
    }
    if (action.kind != ActionKind::kStart) return;
    start(action);
  }
  void start(const Action& action) {
    for (const auto& [worker, task] : busy_)
      EXPECT_EQ(task.graph, action.task.graph) << describe(graphs_, action) << " while another graph's task runs";
    if (action.task.graph > 0) evaluating_.emplace(action.task.graph, action.task.iteration);
    EXPECT_LE(evaluating_.size(), 1u) << "evaluations at the same time";
    expect_there({graph_of(action.task).node(action.task.node).model}, action.workers, action);
    for (int worker : action.workers) {
      EXPECT_FALSE(lost_.count(worker)) << describe(graphs_, action) << " while it is lost";
      EXPECT_FALSE(busy_.count(worker)) << describe(graphs_, action) << " while it runs something";
      busy_[worker] = action.task;
      tasks_[action.task].insert(worker);
    }
  }
  std::vector<int> alive(const std::string& model) const {
    std::vector<int> workers = workers_of(flow_.graph, flow_.placement, model);
    std::erase_if(workers, [&](int worker) { return lost_.count(worker) > 0; });
    return workers;
  }
  void expect_on(const std::string& model, int worker, const Action& action) {
    if (!flow_.placement.swaps(model) || ever_lost_.count(worker)) return;  // answers may be of an earlier life
    EXPECT_TRUE(there_[worker].count(model)) << describe(graphs_, action) << " without " << model << " on " << worker;
  }
  // A load begins where it fits beside what is there and what still has to leave.
  void expect_room(const Action& action) {
    held_[action.worker].insert(action.model);
    if (flow_.memory.budget_bytes == 0 || ever_lost_.count(action.worker)) return;
    std::vector<std::string> held(held_[action.worker].begin(), held_[action.worker].end());
    for (const auto& [model, content] : flow_.graph.models)
      if (!flow_.placement.swaps(model)) held.push_back(model);
    EXPECT_LE(flow_.memory.bytes(action.worker, held), flow_.memory.budget_bytes) << describe(graphs_, action);
  }
  // Models that take turns are there where they are among these alone, or within a budget.
  void expect_there(const std::set<std::string>& models, const std::vector<int>& workers, const Action& action) {
    for (int worker : workers) {
      for (const std::string& model : models) expect_on(model, worker, action);
      if (flow_.memory.budget_bytes > 0 || ever_lost_.count(worker)) continue;
      for (const std::string& model : there_[worker])
        EXPECT_TRUE(models.count(model)) << describe(graphs_, action) << " beside " << model << " on " << worker;
    }
  }
  // A row is fed only when every producer has it.
  void feed(const Action& action) {
    if (whole(action.task)) whole_fed_[action.task].push_back(action);
    const graph::Graph& graph = graph_of(action.task);
    for (const std::string& value : graph.node(action.task.node).inputs) {
      const int producer = graph.producer(value);
      for (int64_t row = action.first; producer >= 0 && row < action.first + action.count; ++row)
        EXPECT_EQ(done_[std::tuple(action.task.graph, action.task.iteration, producer)].count(row), 1u)
            << describe(graphs_, action);
    }
  }

  const Flow& flow_;
  const graph::NamedGraphs graphs_;
  const graph::ScheduleOptions& options_;
  std::map<int, std::set<std::string>> there_, held_;  // worker → swapped models; with those on their way
  Passes evaluating_, evaluated_;
  std::map<int, Task> busy_;
  std::map<Task, std::set<int>> tasks_;
  std::set<int> lost_, ever_lost_;
  std::map<Task, std::vector<Action>> whole_fed_;
  std::map<std::tuple<int, int64_t, int>, std::set<int64_t>> done_;  // by graph, iteration and node
  std::map<int64_t, std::set<int64_t>> dropped_;
};

void check(const Flow& flow, uint64_t seed) {
  const Simulation simulation = flow.simulated();
  const std::string story = "seed " + std::to_string(seed) + "\n" + yaml_text(flow.placement);
  ASSERT_TRUE(simulation.stopped) << story << trace_text(flow.graphs(), simulation.steps) << simulation.waiting;
  ASSERT_EQ(simulation.steps.back().actions.back().stop, graph::StopKind::kDone)
      << story << simulation.steps.back().actions.back().cause;
  Observer observer(flow);
  for (const graph::Step& step : simulation.steps) observer.watch(step);
  observer.finish();
  ASSERT_FALSE(testing::Test::HasFailure()) << story << trace_text(flow.graphs(), simulation.steps);
}

const uint64_t kSeeds =
    std::getenv("COLLIMATE_SEEDS") ? std::strtoull(std::getenv("COLLIMATE_SEEDS"), nullptr, 10) : base::rounds(1000);

TEST(ScheduleProperties, RandomFlowsFinishAndDoEachRowOnceOnFreeWorkers) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    check(Flow(seed), seed);
    if (HasFatalFailure()) return;
  }
}

TEST(ScheduleProperties, RandomFlowsFinishWithinTheBudgetOfDevices) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Flow flow(seed);
    random_flow::Dice dice(seed + 333);
    flow.give_memory(dice);
    check(flow, seed);
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
    graph::Schedule schedule = flow.schedule();
    for (const graph::Step& step : flow.simulated().steps) {
      base::MemoryState memory;
      schedule.save(memory);
      graph::Schedule loaded = flow.schedule();
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
    const std::vector<graph::Step> steps = flow.simulated().steps;
    const size_t until = 1 + static_cast<size_t>(random_flow::Dice(seed).below(static_cast<int>(steps.size()) - 1));
    graph::Schedule schedule = flow.schedule(), loaded = schedule;
    Observer observer(flow);
    for (size_t i = 0; i < until; ++i) {
      schedule.on(steps[i].event);
      observer.watch(steps[i]);
    }
    base::MemoryState memory;
    schedule.save(memory);
    loaded.load(memory);
    observer.restart();
    const Simulation rest = simulate_from(loaded, flow.graphs(), flow.options, flow.predictions);
    ASSERT_TRUE(rest.stopped) << "seed " << seed << "\n" << rest.waiting;
    for (const graph::Step& step : rest.steps) observer.watch(step);
    observer.finish();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " until " << until << "\n"
                               << trace_text(flow.graphs(), rest.steps);
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

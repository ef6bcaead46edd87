#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

#include "collimate/base/memory_state.h"
#include "collimate/graph/schedule.h"
#include "tests/support/base/dice.h"
#include "tests/support/graph/sample_graphs.h"

// With exact_versions an iteration draws by the weights that its number says, whoever is faster.
namespace collimate::graph {
namespace {

constexpr int64_t kIterations = 7;

// When a worker of the policy is lost, once.
enum class Loss { kNever, kInTheMiddle, kDuringASave };

struct Ahead {
  int64_t staleness = 1;
  int64_t evaluate_every = 0;
  Loss loss = Loss::kNever;
  bool save_and_load = false;
  bool turns = false;                // PPO, of which all models take turns
  bool other_residency = false;      // with each load
  int64_t iterations = kIterations;  // of the first process: a second one goes on from its last save
};

// Answers actions in an order that the dice say, and notes the version of the policy with which each iteration starts
// to draw.
class Answers {
 public:
  Answers(const Ahead& ahead, uint64_t seed)
      : dice_(seed),
        ahead_(ahead),
        lost_at_(5 + dice_.below(60)),
        graph_(ahead.turns ? samples::ppo() : samples::grpo()) {
    placement_.devices = 3;
    std::vector<std::string> trained = {"trainer"};
    if (ahead.turns) trained = {"reference", "reward", "trainer", "value"};
    placement_.groups = {{"rollout", {{0, 1}, {"policy"}}}, {"training", {{2}, trained}}};
    if (ahead.turns)
      for (const auto& [model, content] : graph_.models) placement_.residency[model] = Residency::kSwap;
    if (ahead.turns) placement_.residency.erase("gae");
    evaluations_ = {{.graph = graph_, .rows = 2}};
    evaluations_[0].graph.nodes.resize(1);
    evaluations_[0].graph.links.clear();
    evaluations_[0].every = ahead.evaluate_every;
    options_ = {.iterations = ahead.iterations,
                .rows = 4,
                .staleness = ahead.staleness,
                .save_every = 1,
                .evaluate_every = ahead.evaluate_every,
                .exact_versions = true};
  }

  // The version by which each iteration began, and the evaluations' by graph number 1.
  std::map<std::pair<int, int64_t>, int64_t> run() {
    Schedule schedule = fresh();
    take(schedule, Event::begin());
    for (int step = 0; !schedule.stopped() && step < 3000; ++step) {
      if (events_.empty()) {
        ADD_FAILURE() << schedule.waiting();
        break;
      }
      if (!lost_ && loses(step)) lose(schedule);
      const auto at = events_.begin() + first_of_a_task(dice_.below(static_cast<int>(events_.size())));
      const Event event = *at;
      events_.erase(at);
      if (event.kind == EventKind::kWeightsAt) arrived(event);
      take(schedule, event);
      if (!std::exchange(saved_, false)) continue;
      const bool ends = options_.iterations < kIterations && schedule.completed() == options_.iterations;
      if (ends) options_.iterations = kIterations;
      if (ends || (ahead_.save_and_load && dice_.one_in(2))) reload(schedule);
    }
    EXPECT_TRUE(schedule.stopped());
    EXPECT_EQ(lost_, ahead_.loss != Loss::kNever);
    return drawn_;
  }

 private:
  Schedule fresh() const { return Schedule(graph_, placement_, options_, evaluations_); }

  // Rows of a task come before its end.
  int first_of_a_task(int index) const {
    const Task task = events_[static_cast<size_t>(index)].task;
    const EventKind kind = events_[static_cast<size_t>(index)].kind;
    if (kind != EventKind::kFinished) return index;
    for (int i = 0; i < static_cast<int>(events_.size()); ++i)
      if (events_[static_cast<size_t>(i)].kind == EventKind::kRows && events_[static_cast<size_t>(i)].task == task)
        return i;
    return index;
  }
  void arrived(const Event& event) {
    for (int worker : {0, 1})
      if (event.worker < 0 || event.worker == worker) versions_[worker] = event.version;
  }

  void take(Schedule& schedule, const Event& event) {
    const std::span<const Action> given = schedule.on(event);
    for (const Action& action : std::vector<Action>(given.begin(), given.end())) act(action);
  }
  void act(const Action& action) {
    if (action.kind == ActionKind::kStart && action.task.node == 0)
      for (int worker : action.workers) draws(action.task, worker);
    if (action.kind == ActionKind::kFeed) events_.push_back(Event::rows(action.task, action.first, action.count));
    if (action.kind == ActionKind::kClose) events_.push_back(Event::finished(action.task));
    if (action.kind == ActionKind::kTransition) events_.push_back(arrival_of(action));
    if (action.kind == ActionKind::kSaveModel && action.model == "policy") written_ = versions_;
    if (action.kind == ActionKind::kSave) saves();
  }
  static Event arrival_of(const Action& action) {
    if (action.transition == TransitionKind::kWeights)
      return Event::weights_at(action.model, action.version, action.worker);
    return Event::resident_at(action.model, action.worker, action.transition == TransitionKind::kLoad);
  }
  void saves() {
    saved_ = true;
    for (const auto& [worker, version] : versions_) EXPECT_GE(version, 0) << "worker " << worker << " saves no weights";
    EXPECT_EQ(versions_[0], versions_[1]) << "a checkpoint is one state";
    if (!ahead_.turns) return;
    EXPECT_EQ(std::exchange(written_, {}), versions_) << "the policy was saved before, with others";
  }
  void draws(const Task& task, int worker) {
    const auto [known, first] = drawn_.try_emplace({task.graph, task.iteration}, versions_[worker]);
    EXPECT_TRUE(lost_ || known->second == versions_[worker]) << "iteration " << task.iteration;
  }

  bool loses(int step) const {
    if (ahead_.loss == Loss::kDuringASave) return step > lost_at_ && !written_.empty();
    return ahead_.loss == Loss::kInTheMiddle && step == lost_at_;
  }
  void lose(Schedule& schedule) {
    lost_ = true;
    std::erase_if(events_, [](const Event& event) { return event.worker == 1; });
    versions_[1] = -1;
    take(schedule, Event::lost(1, "died"));
    std::erase_if(events_,
                  [&](const Event& event) { return event.kind == EventKind::kWeightsAt && event.worker == 1; });
    take(schedule, Event::back(1));
  }

  // Goes on with what a checkpoint brings back: the schedule's state, and the weights that the policy had.
  void reload(Schedule& schedule) {
    base::MemoryState state;
    schedule.save(state);
    if (ahead_.other_residency)
      placement_.residency = {{"policy", placement_.swaps("policy") ? Residency::kDevice : Residency::kSwap}};
    schedule = fresh();
    schedule.load(state);
    events_.clear();
    take(schedule, Event::begin());
  }

  base::Dice dice_;
  const Ahead ahead_;
  const int lost_at_;
  const Graph graph_;
  Placement placement_;
  std::vector<EvaluationGraph> evaluations_;
  ScheduleOptions options_;
  std::deque<Event> events_;
  std::map<int, int64_t> versions_ = {{0, -1}, {1, -1}};
  std::map<std::pair<int, int64_t>, int64_t> drawn_;
  std::map<int, int64_t> written_;  // versions of the policy that a save has already, before the others' turn
  bool saved_ = false, lost_ = false;
};

int64_t version_for(const Ahead& ahead, int64_t iteration) {
  int64_t version = std::max<int64_t>(0, iteration - ahead.staleness);
  if (ahead.evaluate_every > 0) version = std::max(version, iteration / ahead.evaluate_every * ahead.evaluate_every);
  return version;
}

TEST(ScheduleVersions, FollowFromTheIterationWhateverTheOrderOfEvents) {
  for (const Ahead ahead : {Ahead{.staleness = 1},
                            {.staleness = 2},
                            {.staleness = 1, .evaluate_every = 3},
                            {.staleness = 2, .evaluate_every = 2},
                            {.staleness = 1, .save_and_load = true},
                            {.staleness = 2, .evaluate_every = 3, .save_and_load = true},
                            {.staleness = 2, .save_and_load = true, .turns = true},
                            {.staleness = 2, .save_and_load = true, .other_residency = true},
                            {.staleness = 1, .evaluate_every = 3, .iterations = 4},
                            {.staleness = 1, .turns = true, .iterations = 4}})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(fmt::format("staleness {}, evaluations {}, seed {}", ahead.staleness, ahead.evaluate_every, seed));
      const auto drawn = Answers(ahead, seed).run();
      for (int64_t i = 0; i < kIterations; ++i) EXPECT_EQ(drawn.at({0, i}), version_for(ahead, i)) << "iteration " << i;
      for (const auto& [call, version] : drawn)
        EXPECT_TRUE(call.first == 0 || version == call.second + 1) << "evaluation after " << call.second;
    }
}

TEST(ScheduleVersions, AWorkerThatIsLostGetsTheNewestAndTheRunGoesOn) {
  for (const Ahead ahead : {Ahead{.staleness = 2, .loss = Loss::kInTheMiddle, .save_and_load = true},
                            {.staleness = 2, .loss = Loss::kInTheMiddle, .turns = true},
                            {.staleness = 2, .loss = Loss::kDuringASave, .save_and_load = true, .turns = true}})
    for (uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE(fmt::format("turns {}, seed {}", ahead.turns, seed));
      const auto drawn = Answers(ahead, seed).run();
      for (int64_t i = 0; i < kIterations; ++i) EXPECT_GE(drawn.at({0, i}), version_for(ahead, i)) << "iteration " << i;
    }
}

}  // namespace
}  // namespace collimate::graph

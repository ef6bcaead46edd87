#include "collimate/graph/schedule_swaps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "collimate/base/philox.h"
#include "collimate/graph/schedule.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Move = Swaps::Move;

// Three models take turns on each worker.
class SwapsTest : public testing::Test {
 protected:
  std::vector<Move> moves_for(const std::vector<std::string>& used, int worker = 0) {
    std::vector<Move> moves;
    ready_ = swaps_.prepare(room(worker), used, moves);
    return moves;
  }
  void complete(const std::vector<Move>& moves) {
    for (const Move& move : moves) swaps_.moved(move.model, move.worker, move.load);
  }
  // Moves as many as it takes.
  void bring(const std::vector<std::string>& used) {
    while (!ready(used)) {
    }
  }
  bool ready(const std::vector<std::string>& used) {
    complete(moves_for(used));
    return ready_;
  }
  Swaps::Room room(int worker = 0) const { return {worker, always_, swapped_, memory_}; }

  std::vector<std::string> always_ = {"d"}, swapped_ = {"a", "b", "c"};
  DeviceMemory memory_;
  Swaps swaps_;
  bool ready_ = false;
};

TEST_F(SwapsTest, LoadsWhatIsUsedAndIsReadyWhenAllOfItIsThere) {
  EXPECT_THAT(moves_for({"a", "c"}), ElementsAre(Move{"a", 0, true}, Move{"c", 0, true}));
  EXPECT_FALSE(ready_);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty()) << "they have begun";
  swaps_.moved("a", 0, true);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty());
  EXPECT_FALSE(ready_);
  swaps_.moved("c", 0, true);
  EXPECT_THAT(moves_for({"a", "c"}), IsEmpty());
  EXPECT_TRUE(ready_);
  moves_for({"none of them"});
  EXPECT_FALSE(ready_) << "others than those used are there";
}

TEST_F(SwapsTest, OffLoadsFirst) {
  complete(moves_for({"a", "b"}));
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"a", 0, false}, Move{"b", 0, false}));
  swaps_.moved("b", 0, false);
  EXPECT_THAT(moves_for({"c"}), IsEmpty()) << "one of them is still there";
  swaps_.moved("a", 0, false);
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"c", 0, true}));
}

TEST_F(SwapsTest, AModelThatIsStillLoadedIsInTheWayUntilItIsAwayAgain) {
  const std::vector<Move> loads = moves_for({"a"});
  EXPECT_THAT(moves_for({"b"}), IsEmpty());
  complete(loads);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"a", 0, false}));
  EXPECT_FALSE(ready_);
}

TEST_F(SwapsTest, WorkersAreApartAndALostOneHoldsNothing) {
  complete(moves_for({"a"}, 0));
  complete(moves_for({"a"}, 1));
  swaps_.lost(1);
  EXPECT_THAT(moves_for({"a"}, 1), ElementsAre(Move{"a", 1, true}));
  EXPECT_THAT(moves_for({"a"}, 0), IsEmpty());
  EXPECT_TRUE(ready_);
}

TEST_F(SwapsTest, AnAnswerOfAnEarlierLifeCountsNoMore) {
  moves_for({"a"});
  swaps_.lost(0);
  swaps_.moved("a", 0, true);
  EXPECT_THAT(moves_for({"a"}), ElementsAre(Move{"a", 0, true}));
}

TEST_F(SwapsTest, GoOnAsSaved) {
  complete(moves_for({"a"}));
  moves_for({"b"});
  const nlohmann::json saved = swaps_;
  EXPECT_EQ(saved.at("states").dump(), R"([[["a",0],3],[["b",0],0],[["c",0],0]])");
  swaps_ = saved.get<Swaps>();
  swaps_.moved("a", 0, false);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"b", 0, true}));
}

TEST_F(SwapsTest, AtTheEndOneModelAloneIsBroughtIn) {
  complete(moves_for({"a"}, 0));
  moves_for({"b"}, 1);  // on its way
  EXPECT_THAT(swaps_.alone("c", {0, 1}),
              ElementsAre(Move{"a", 0, false}, Move{"b", 1, false}, Move{"c", 0, true}, Move{"c", 1, true}));
  EXPECT_THAT(swaps_.alone("c", {0, 1}), IsEmpty());
  EXPECT_THAT(swaps_.alone("", {}), ElementsAre(Move{"c", 0, false}, Move{"c", 1, false}));
}

// The device has 100 bytes, of which d takes 20; a and b share 10 of theirs.
class SwapsWithinABudgetTest : public SwapsTest {
 protected:
  SwapsWithinABudgetTest() {
    memory_.budget_bytes = 100;
    memory_.items[0] = {{"a", {{"weights", 10}, {"a", 20}}},
                        {"b", {{"weights", 10}, {"b", 30}}},
                        {"c", {{"c", 40}}},
                        {"d", {{"d", 20}}}};
  }
};

TEST_F(SwapsWithinABudgetTest, ModelsStayWhereThereIsRoomAndSharedItemsCountOnce) {
  bring({"a"});
  EXPECT_EQ(swaps_.bytes(room()), 50);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"b", 0, true}));
  swaps_.moved("b", 0, true);
  EXPECT_EQ(swaps_.bytes(room()), 80);
  EXPECT_THAT(moves_for({"a"}), IsEmpty());
  EXPECT_TRUE(ready_) << "it has stayed";
}

TEST_F(SwapsWithinABudgetTest, ThoseLeaveFirstThatWereNotUsedForLongestAndNoMoreThanNeeded) {
  bring({"b"});
  bring({"a"});
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"b", 0, false}));
  EXPECT_THAT(moves_for({"c"}), IsEmpty()) << "there is room when it is away";
  swaps_.moved("b", 0, false);
  EXPECT_THAT(moves_for({"c"}), ElementsAre(Move{"c", 0, true}));
  swaps_.moved("c", 0, true);
  moves_for({"c"});
  EXPECT_TRUE(ready_);
  EXPECT_THAT(moves_for({"b"}), ElementsAre(Move{"a", 0, false})) << "c was used since";
}

// Whatever is asked for, and in whatever order moves end, never is more there than the budget has.
TEST_F(SwapsWithinABudgetTest, NeverIsMoreThereThanTheBudget) {
  std::vector<Move> open;
  uint32_t draw = 0;
  const auto below = [&](size_t n) { return base::random_bits(3, 1, 0, draw++) % n; };
  int ready = 0;
  for (int step = 0; step < 2000; ++step) {
    std::vector<std::string> used = {swapped_[below(3)]};
    if (below(4) == 0) used = {"a", "b"};
    for (const Move& move : moves_for(used)) open.push_back(move);
    ready += ready_ ? 1 : 0;
    ASSERT_LE(swaps_.bytes(room()), memory_.budget_bytes) << step;
    if (open.empty() || below(2) == 0) continue;
    const size_t ended = below(open.size());
    complete({open[ended]});
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(ended));
  }
  EXPECT_GT(ready, 100);
}

// Gives what answers an action, of workers that do everything at once.
std::vector<Event> answers_to(const Action& action) {
  if (action.kind == ActionKind::kFeed) return {Event::rows(action.task, action.first, action.count)};
  if (action.kind == ActionKind::kClose) return {Event::finished(action.task)};
  if (action.kind != ActionKind::kTransition) return {};
  if (action.transition == TransitionKind::kWeights)
    return {Event::weights_at(action.model, action.version, action.worker)};
  return {Event::resident_at(action.model, action.worker, action.transition == TransitionKind::kLoad)};
}

// A save brings those to their device that have something to save.
TEST(Schedule, SavesLeaveOutModelsThatKeepNothing) {
  const Graph graph = samples::ppo();
  Placement placement = flattening(graph, 1);
  for (const char* model : {"policy", "reference", "trainer"}) placement.residency[model] = Residency::kSwap;
  const auto saved = [&](const DeviceMemory& memory) {
    std::map<std::string, int> turns;
    int saves = 0;
    Schedule schedule(graph, placement, {.iterations = 2, .rows = 2, .save_every = 1}, {}, memory);
    for (std::deque<Event> events = {Event::begin()}; !schedule.stopped(); events.pop_front()) {
      EXPECT_FALSE(events.empty()) << schedule.waiting();
      for (const Action& action : schedule.on(events.at(0))) {
        if (action.kind == ActionKind::kSaveModel) ++turns[action.model];
        if (action.kind == ActionKind::kSave) ++saves;
        for (const Event& answer : answers_to(action)) events.push_back(answer);
      }
    }
    EXPECT_EQ(saves, 2);
    return turns;
  };
  using Turns = std::map<std::string, int>;
  EXPECT_EQ(saved({}), (Turns{{"policy", 2}, {"reference", 2}, {"trainer", 2}}));
  EXPECT_EQ(saved({.stateless = {"policy", "reference"}}), (Turns{{"trainer", 2}}));
  EXPECT_EQ(saved({.stateless = {"policy", "reference", "trainer"}}), Turns());
}

// Nothing moves where a policy reads its trainer's weights: the trainer stays, and nobody waits for it to leave.
TEST(Schedule, WeightsThatAreReadInPlaceSendNobodyAway) {
  const Graph graph = samples::grpo();
  Placement placement = flattening(graph, 1);
  placement.residency = {{"policy", Residency::kSwap}, {"trainer", Residency::kSwap}};
  Schedule schedule(graph, placement, {.iterations = 2, .rows = 2}, {}, {.in_place = {"policy"}});
  const int train = graph.node_index("trainer.train");
  int trained = 0;
  for (std::deque<Event> events = {Event::begin()}; !schedule.stopped(); events.pop_front()) {
    ASSERT_FALSE(events.empty()) << schedule.waiting();
    const bool has_trained = events[0].kind == EventKind::kFinished && events[0].task.node == train;
    const std::span<const Action> given = schedule.on(events[0]);
    const std::vector<Action> actions(given.begin(), given.end());
    if (has_trained && ++trained) {
      ASSERT_EQ(actions.at(0).kind, ActionKind::kTransition);
      EXPECT_EQ(actions[0].transition, TransitionKind::kWeights);
    }
    for (const Action& action : actions)
      for (const Event& answer : answers_to(action)) events.push_back(answer);
  }
  EXPECT_EQ(trained, 2);
}

}  // namespace
}  // namespace collimate::graph

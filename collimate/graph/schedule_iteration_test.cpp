#include "collimate/graph/schedule_iteration.h"

#include <gtest/gtest.h>

#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

// Samples come in groups of two. The policy generates on devices 0 and 1; reward and filter are called for whole
// groups, and advantages once for the iteration.
class IterationRunTest : public testing::Test {
 protected:
  void issue(int64_t rows) { run_.issue(facts_, workers_, rows); }
  int node(const char* id) const { return facts_.graph.node_index(id); }
  RowSet home(int replica) const { return run_.replica(generate_, replica).home; }
  RowSet ready(int index, RowRange window) const { return run_.ready(facts_, index, 0, window); }
  void done(int index, int64_t first, int64_t end) { run_.node(index).done.add({first, end}); }

  const ScheduleFacts facts_ =
      make_facts(samples::grpo(true), flattening(samples::grpo(true), 2), {.rows = 8, .group_size = 2});
  const int generate_ = node("policy.generate"), reward_ = node("reward"), filter_ = node("filter");
  const int advantages_ = node("advantages");
  Workers workers_{facts_.nodes_on.size()};
  IterationRun run_{3, facts_};
};

RowSet rows_of(std::initializer_list<RowRange> ranges) {
  RowSet rows;
  for (const RowRange& range : ranges) rows.add(range);
  return rows;
}

TEST_F(IterationRunTest, TheFirstRowsAreSharedOutInBlocksAndLaterGroupsInTurn) {
  issue(8);
  EXPECT_EQ(home(0), RowSet(0, 4));
  EXPECT_EQ(home(1), RowSet(4, 8));
  EXPECT_TRUE(run_.replica(advantages_, 0).home.empty()) << "it is called once for all rows";
  issue(6);
  EXPECT_EQ(run_.issued, 14);
  EXPECT_EQ(home(0), rows_of({{0, 4}, {8, 10}, {12, 14}}));
  EXPECT_EQ(home(1), rows_of({{4, 8}, {10, 12}}));
}

TEST_F(IterationRunTest, InAnotherPlacementRowsGetHomesAnewAndNothingRuns) {
  issue(8);
  done(generate_, 0, 3);
  run_.replica(generate_, 1).part = 4;
  run_.replica(generate_, 1).running = true;
  run_.replica(generate_, 1).fed = RowSet(4, 6);
  run_.replica(advantages_, 0).running = run_.node(advantages_).called = true;
  const ScheduleFacts three = make_facts(facts_.graph, flattening(facts_.graph, 3), facts_.options);
  const Workers workers(three.nodes_on.size());
  run_.place_anew(three, workers);
  ASSERT_EQ(run_.node(generate_).replicas.size(), 3U);
  EXPECT_EQ(home(0), RowSet(0, 2));
  EXPECT_EQ(home(1), RowSet(2, 4));
  EXPECT_EQ(home(2), RowSet(4, 8));
  for (int r = 0; r < 3; ++r) {
    EXPECT_FALSE(run_.replica(generate_, r).running);
    EXPECT_TRUE(run_.replica(generate_, r).fed.empty());
    EXPECT_EQ(run_.replica(generate_, r).part, 4) << "no call of before is made again";
  }
  EXPECT_FALSE(run_.node(advantages_).called);
  EXPECT_EQ(run_.open(generate_, 1), RowSet(3, 4)) << "what is done stays done";
}

TEST_F(IterationRunTest, ALostWorkerIsNoHomeUnlessAllAreLost) {
  workers_.lose(0, "gone");
  issue(4);
  EXPECT_TRUE(home(0).empty());
  EXPECT_EQ(home(1), RowSet(0, 4));
  workers_.lose(1, "gone");
  issue(2);
  EXPECT_EQ(home(0), RowSet(4, 6));
}

TEST_F(IterationRunTest, ARowIsReadyWithItsInputsUntilItIsFedDoneOrDropped) {
  issue(8);
  EXPECT_EQ(ready(generate_, {0, 8}), RowSet(0, 4)) << "its share: the input is there";
  EXPECT_EQ(ready(generate_, {3, 6}), RowSet(3, 4));
  run_.replica(generate_, 0).fed = RowSet(0, 1);
  done(generate_, 1, 2);
  run_.drop({2, 3});
  EXPECT_EQ(ready(generate_, {0, 8}), RowSet(3, 4));
}

TEST_F(IterationRunTest, ANodeOfGroupsIsFedWholeOnesOfWhatIsLeft) {
  issue(8);
  done(generate_, 1, 4);
  EXPECT_EQ(ready(reward_, {0, 8}), RowSet(2, 4));
  EXPECT_EQ(ready(reward_, {3, 4}), RowSet(2, 4)) << "the window grows to whole groups";
  run_.drop({0, 1});
  EXPECT_EQ(ready(reward_, {0, 8}), RowSet(1, 4)) << "nothing more comes of its group";
}

TEST_F(IterationRunTest, AReplicaHasCaughtUpWithWhatWasAskedForSoFar) {
  issue(8);
  EXPECT_EQ(run_.open(generate_, 0), RowSet(0, 4));
  done(generate_, 0, 3);
  EXPECT_FALSE(run_.caught_up(facts_, generate_, 0));
  run_.drop({3, 4});
  EXPECT_TRUE(run_.caught_up(facts_, generate_, 0));
  EXPECT_FALSE(run_.caught_up(facts_, generate_, 1));
  run_.replica(generate_, 0).running = true;
  EXPECT_FALSE(run_.caught_up(facts_, generate_, 0));
  EXPECT_FALSE(run_.caught_up(facts_, advantages_, 0));
  run_.node(advantages_).called = true;
  EXPECT_TRUE(run_.caught_up(facts_, advantages_, 0));
}

TEST_F(IterationRunTest, RowsAreDroppedOnceAndReplacedByWholeGroups) {
  issue(8);
  EXPECT_EQ(run_.drop({0, 3}), 3);
  EXPECT_EQ(run_.drop({2, 5}), 2);
  EXPECT_EQ(run_.dropped, RowSet(0, 5));
  run_.deficit = 5;
  EXPECT_EQ(run_.replaceable(2), 4);
  run_.deficit = 1;
  EXPECT_EQ(run_.replaceable(2), 0);
}

TEST_F(IterationRunTest, IsDecidedWhenTheFilterHasLetPassOrDroppedEveryRow) {
  issue(8);
  done(filter_, 0, 6);
  EXPECT_FALSE(run_.decided(facts_));
  run_.drop({6, 8});
  EXPECT_TRUE(run_.decided(facts_));
  issue(2);
  EXPECT_FALSE(run_.decided(facts_));
}

TEST_F(IterationRunTest, MovedRowsHaveAnotherHome) {
  issue(8);
  done(generate_, 0, 1);
  run_.move(generate_, 0, 1, run_.open(generate_, 0));
  EXPECT_EQ(home(0), RowSet(0, 1));
  EXPECT_EQ(home(1), RowSet(1, 8));
}

TEST_F(IterationRunTest, IsCompleteWithAllItsNodesAndGoesOnAsSaved) {
  issue(8);
  run_.drop({2, 4});
  run_.replica(generate_, 1).part = 2;
  const nlohmann::json saved = run_;
  EXPECT_EQ(nlohmann::json(saved.get<IterationRun>()), saved);
  EXPECT_EQ(saved.at("number"), 3);
  for (NodeRun& state : run_.nodes) {
    EXPECT_FALSE(run_.complete());
    state.complete = true;
  }
  EXPECT_TRUE(run_.complete());
}

}  // namespace
}  // namespace collimate::graph

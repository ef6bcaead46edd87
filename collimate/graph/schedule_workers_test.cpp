#include "collimate/graph/schedule_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/graph/schedule.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

const Task kTask{1, 2, 3, 4};

TEST(Workers, AreIdleUnlessOneHasATaskOrTakesPartInATransfer) {
  Workers workers(3);
  EXPECT_TRUE(workers.idle());
  workers.start({0, 2}, kTask);
  EXPECT_EQ(workers[0].task, kTask);
  EXPECT_FALSE(workers[1].task);
  EXPECT_EQ(workers[2].task, kTask);
  EXPECT_FALSE(workers.idle());
  workers.end({0, 2});
  EXPECT_TRUE(workers.idle());
  workers[1].transferring = true;
  EXPECT_FALSE(workers.idle());
}

TEST(Workers, AReplicaIsAliveWhereNoneOfItsWorkersIsLost) {
  Workers workers(3);
  EXPECT_TRUE(workers.lose(1, "first"));
  EXPECT_FALSE(workers.lose(1, "again"));
  EXPECT_EQ(workers[1].cause, "first");
  EXPECT_FALSE(workers.alive({0, 1}));
  EXPECT_TRUE(workers.alive({0, 2}));
  workers.back(1);
  EXPECT_TRUE(workers.alive({0, 1}));
  EXPECT_TRUE(workers.lose(1, "second"));
}

TEST(Workers, ALostOneIsAwaitedUntilItIsBackOrItsTimeIsOver) {
  Workers workers(3);
  EXPECT_FALSE(workers.awaited());
  const int first = workers.arm(1), other = workers.arm(2);
  EXPECT_NE(first, other);
  workers.back(1);
  EXPECT_TRUE(workers.awaited()) << "the other one";
  EXPECT_EQ(workers.expired(first), std::nullopt);
  EXPECT_EQ(workers.expired(other), 2);
  EXPECT_EQ(workers.expired(other), std::nullopt);
  EXPECT_FALSE(workers.awaited());
}

TEST(Workers, AfterASetupTheyAreNewButTheirTimersAreNot) {
  Workers workers(2);
  const int timer = workers.arm(0);
  workers.lose(0, "gone");
  workers.start({1}, kTask);
  workers[1].transferring = true;
  workers.reset();
  EXPECT_TRUE(workers.idle());
  EXPECT_TRUE(workers.alive({0, 1}));
  EXPECT_FALSE(workers.awaited());
  EXPECT_GT(workers.arm(0), timer);
}

TEST(Workers, GoOnAsSaved) {
  Workers workers(2);
  workers.lose(0, "gone");
  const int timer = workers.arm(0);
  workers.start({1}, kTask);
  const nlohmann::json saved = workers;
  Workers loaded(0);
  saved.get_to(loaded);
  EXPECT_EQ(nlohmann::json(loaded), saved);
  EXPECT_EQ(loaded[1].task, kTask);
  EXPECT_GT(loaded.arm(1), timer);
  EXPECT_EQ(loaded.expired(timer), 0);
}

// Running moments of rewards are such a state: a process begun anew has none of them.
TEST(Workers, OneWithTheStateOfAFunctionThatMayNotRunAgainStopsTheRun) {
  Graph graph = samples::grpo();
  for (auto& [name, model] : graph.models)
    for (FunctionSpec& spec : model.functions)
      if (spec.name == "advantages") spec.retry_safe = false;
  Placement placement;
  placement.devices = 2;
  placement.groups = {{"a", {{0}, {"policy"}}}, {"b", {{1}, {"trainer"}}}};
  std::string causes;
  for (int worker = 0; worker < worker_count(graph, placement); ++worker) {
    Schedule schedule(graph, placement, {.iterations = 2, .rows = 2});
    schedule.on(Event::begin());
    for (const Action& action : schedule.on(Event::lost(worker, "killed"))) causes += action.cause + "\n";
  }
  EXPECT_THAT(causes, testing::ContainsRegex("with the state of .*advantages.*: killed"));
}

}  // namespace
}  // namespace collimate::graph

#include "collimate/graph/schedule_barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::graph {
namespace {

using testing::ElementsAre;
using Pass = Barrier::Pass;

ScheduleFacts facts_of(const ScheduleOptions& options, std::vector<EvaluationTimes> times) {
  ScheduleFacts facts;
  facts.options = options;
  facts.times = std::move(times);
  return facts;
}

TEST(Barrier, SavesAndEvaluatesAsOftenAsItIsToldAndAtTheEnd) {
  const ScheduleFacts facts =
      facts_of({.iterations = 7, .save_every = 2}, {{.name = "a", .every = 3}, {.name = "b", .every = 4}});
  std::vector<int64_t> saved;
  std::vector<Pass> evaluated;
  Barrier barrier;
  for (int64_t iteration = 0; iteration < facts.options.iterations; ++iteration) {
    const Barrier::Due due = barrier.after(facts, iteration);
    EXPECT_FALSE(due.stop);
    if (due.save) saved.push_back(iteration);
    while (barrier.wanted()) {
      evaluated.push_back(*barrier.wanted());
      barrier.evaluate();
      barrier.evaluated();
    }
  }
  EXPECT_THAT(saved, ElementsAre(1, 3, 5, 6));
  EXPECT_THAT(evaluated, ElementsAre(Pass{"a", 2}, Pass{"b", 3}, Pass{"a", 5}, Pass{"a", 6, true}, Pass{"b", 6, true}));
  const Barrier::Due due = Barrier().after(facts_of({.iterations = 1}, {}), 0);
  EXPECT_FALSE(due.save) << "0 is never";
}

TEST(Barrier, WhatWasAskedForFollowsTheNextIterationOnce) {
  const ScheduleFacts facts = facts_of({.iterations = 9}, {{.name = "a"}});
  Barrier barrier;
  barrier.ask(Ask::kSave);
  EXPECT_TRUE(barrier.after(facts, 0).save);
  EXPECT_FALSE(barrier.after(facts, 1).save);
  barrier.ask(Ask::kEvaluate);
  EXPECT_FALSE(barrier.after(facts, 2).save);
  EXPECT_EQ(barrier.wanted(), (Pass{"a", 2}));
}

TEST(Barrier, AskedToStopItSavesAndStopsUnlessTheIterationIsTheLastAnyway) {
  const ScheduleFacts facts = facts_of({.iterations = 2}, {});
  Barrier barrier;
  barrier.ask(Ask::kStop);
  EXPECT_FALSE(barrier.holds(0, 0)) << "it goes on to its end";
  EXPECT_TRUE(barrier.holds(1, 0));
  const Barrier::Due first = barrier.after(facts, 0), last = barrier.after(facts, 1);
  EXPECT_TRUE(first.save && first.stop);
  EXPECT_TRUE(last.save && !last.stop);
}

TEST(Barrier, AnEvaluationHoldsEveryTaskUntilItHasEnded) {
  Barrier barrier;
  barrier.begin({{.name = "", .first = true}, {.name = "b"}}, 4);
  EXPECT_EQ(barrier.wanted(), (Pass{"", 3}));
  EXPECT_TRUE(barrier.holds(4, 4));
  barrier.evaluate();
  EXPECT_EQ(barrier.wanted(), std::nullopt);
  EXPECT_TRUE(barrier.holds(4, 4));
  barrier.evaluated();
  EXPECT_FALSE(barrier.holds(4, 4));
}

TEST(Barrier, ASaveHoldsEveryTaskUntilItHasEnded) {
  Barrier barrier;
  barrier.want({2, {"policy"}, ""});
  EXPECT_TRUE(barrier.holds(3, 3));
  barrier.save().reset();
  EXPECT_FALSE(barrier.holds(3, 3));
}

TEST(Barrier, ANewProcessRepeatsAnEvaluationThatThereIsStillAndIsNotStopped) {
  Barrier barrier;
  barrier.begin({{.name = "a", .first = true}, {.name = "b", .first = true}}, 0);
  barrier.evaluate();
  barrier.ask(Ask::kStop);
  const nlohmann::json saved = barrier;
  auto loaded = saved.get<Barrier>();
  loaded.restart(facts_of({}, {{.name = "b"}, {.name = "a"}}));
  EXPECT_EQ(loaded.wanted(), (Pass{"a", -1}));
  EXPECT_FALSE(loaded.stop_asked());
  loaded.restart(facts_of({}, {{.name = "b"}}));
  EXPECT_EQ(loaded.wanted(), (Pass{"b", -1}));
}

TEST(Barrier, ARunThatGoesOnBehindItsEndForgetsTheEvaluationThere) {
  const std::vector<EvaluationTimes> times = {{.name = "a", .every = 3}, {.name = "b", .every = 2}};
  const auto after_four_go_on_to = [&](int64_t iterations, bool asked) {
    Barrier barrier;
    if (asked) barrier.ask(Ask::kEvaluate);
    barrier.after(facts_of({.iterations = 4}, times), 3);
    EXPECT_EQ(barrier.wanted(), (Pass{"a", 3, !asked}));
    barrier.restart(facts_of({.iterations = iterations}, times));
    return barrier.wanted();
  };
  EXPECT_EQ(after_four_go_on_to(4, false), (Pass{"a", 3, true}));
  EXPECT_EQ(after_four_go_on_to(5, false), (Pass{"b", 3}));
  EXPECT_EQ(after_four_go_on_to(5, true), (Pass{"a", 3})) << "somebody asked for it";
}

}  // namespace
}  // namespace collimate::graph

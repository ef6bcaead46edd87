#include "collimate/graph/schedule_barrier.h"

#include <gtest/gtest.h>

namespace collimate::graph {
namespace {

TEST(Barrier, SavesAndEvaluatesAsOftenAsTheOptionsSayAndAtTheEnd) {
  const ScheduleOptions options{.iterations = 7, .save_every = 2, .evaluate_every = 3};
  std::vector<int64_t> saved, evaluated;
  Barrier barrier;
  for (int64_t iteration = 0; iteration < options.iterations; ++iteration) {
    const Barrier::Due due = barrier.after(options, iteration);
    EXPECT_FALSE(due.stop);
    if (due.save) saved.push_back(iteration);
    if (barrier.wanted()) evaluated.push_back(*barrier.wanted());
    barrier.evaluate();
    barrier.evaluated();
  }
  EXPECT_EQ(saved, (std::vector<int64_t>{1, 3, 5, 6}));
  EXPECT_EQ(evaluated, (std::vector<int64_t>{2, 5, 6}));
  const Barrier::Due due = Barrier().after({.iterations = 1}, 0);
  EXPECT_FALSE(due.save) << "0 is never";
}

TEST(Barrier, WhatWasAskedForFollowsTheNextIterationOnce) {
  const ScheduleOptions options{.iterations = 9};
  Barrier barrier;
  barrier.ask(Ask::kSave);
  EXPECT_TRUE(barrier.after(options, 0).save);
  EXPECT_FALSE(barrier.after(options, 1).save);
  barrier.ask(Ask::kEvaluate);
  EXPECT_FALSE(barrier.after(options, 2).save);
  EXPECT_EQ(barrier.wanted(), 2);
}

TEST(Barrier, AskedToStopItSavesAndStopsUnlessTheIterationIsTheLastAnyway) {
  const ScheduleOptions options{.iterations = 2};
  Barrier barrier;
  barrier.ask(Ask::kStop);
  EXPECT_FALSE(barrier.holds(0, 0)) << "it goes on to its end";
  EXPECT_TRUE(barrier.holds(1, 0));
  const Barrier::Due first = barrier.after(options, 0), last = barrier.after(options, 1);
  EXPECT_TRUE(first.save && first.stop);
  EXPECT_TRUE(last.save && !last.stop);
}

TEST(Barrier, AnEvaluationHoldsEveryTaskUntilItHasEnded) {
  Barrier barrier;
  barrier.begin({.evaluate_first = true}, 4);
  EXPECT_EQ(barrier.wanted(), 3);
  EXPECT_TRUE(barrier.holds(4, 4));
  barrier.evaluated();  // of an earlier process
  EXPECT_EQ(barrier.wanted(), 3);
  barrier.evaluate();
  EXPECT_EQ(barrier.wanted(), std::nullopt);
  EXPECT_TRUE(barrier.holds(4, 4));
  barrier.evaluated();
  EXPECT_FALSE(barrier.holds(4, 4));
  barrier.begin({}, 4);
  EXPECT_EQ(barrier.wanted(), std::nullopt);
}

TEST(Barrier, ANewProcessRepeatsAnEvaluationAndIsNotStopped) {
  Barrier barrier;
  barrier.begin({.evaluate_first = true}, 0);
  barrier.evaluate();
  barrier.ask(Ask::kStop);
  const nlohmann::json saved = barrier;
  EXPECT_EQ(saved.dump(),
            R"({"evaluate_asked":false,"evaluating":true,"evaluation":-1,"save_asked":false,"stop_asked":true})");
  auto loaded = saved.get<Barrier>();
  loaded.restart();
  EXPECT_EQ(loaded.wanted(), -1);
  EXPECT_FALSE(loaded.stop_asked());
}

}  // namespace
}  // namespace collimate::graph

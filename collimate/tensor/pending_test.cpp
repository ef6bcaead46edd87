#include "collimate/tensor/pending.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

namespace collimate::tensor {
namespace {

std::string error_of(const Pending& pending, double deadline) {
  return base::message_of<base::Error>([&] { pending.wait(deadline); });
}

TEST(Pending, SaysWhoWaitsForWhom) {
  Completion work("rank 0", "rank 1");
  EXPECT_EQ(error_of(work.pending(), 0.01),
            "[rank 0] expected rank 1 to move on within 0.01 s, got silence: rank 0 waits for rank 1");
  work.finish();
  EXPECT_EQ(error_of(work.pending(), 0.01), "");
  EXPECT_EQ(error_of(Pending(), 0), "");
}

TEST(Pending, ProgressRenewsTheDeadline) {
  base::ManualClock clock;
  Completion work("a", "b");
  std::atomic<bool> waiting = false;
  std::thread worker([&] {
    while (!waiting) std::this_thread::yield();
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));  // so that the waiter looks at each time
      clock.advance(0.1);
      work.progress();
    }
    work.finish();
  });
  waiting = true;
  EXPECT_EQ(error_of(work.pending(), 0.15), "");
  worker.join();
}

TEST(Pending, FailuresTravel) {
  Completion work("a", "b");
  work.fail(std::make_exception_ptr(base::RunError("first cause")));
  EXPECT_EQ(error_of(work.pending(), 1), "first cause");
  Pending dropped;
  { dropped = Completion("a", "rank 3").pending(); }
  EXPECT_EQ(error_of(dropped, 1), "[rank 3] expected to finish its work, got the end of it before");
}

TEST(Pending, WorkInWhosePlaceOtherWorkComesFails) {
  Completion work("a", "rank 3"), next("a", "rank 4");
  const Pending replaced = work.pending(), kept = next.pending();
  work = std::move(next);
  EXPECT_EQ(error_of(replaced, 0), "[rank 3] expected to finish its work, got the end of it before");
  EXPECT_FALSE(kept.finished());
  work.finish();
  EXPECT_EQ(error_of(kept, 0), "");
}

TEST(Pending, WhatExecIsGivenThenComesAfterTheWork) {
  Completion work("a", "b");
  EXPECT_THROW(work.pending().then(Exec{}, 0), base::RunError);  // it is not done
  work.finish();
  work.pending().then(Exec{}, 0);
}

}  // namespace
}  // namespace collimate::tensor

#include "collimate/tensor/pending.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

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
  Completion work("a", "b");
  std::thread worker([&] {
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      work.progress();
    }
    work.finish();
  });
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

TEST(Pending, WhatExecIsGivenThenComesAfterTheWork) {
  Completion work("a", "b");
  std::atomic<bool> done = false;
  std::thread worker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
    work.finish();
  });
  work.pending().then(Exec{}, 30);
  EXPECT_TRUE(done);
  worker.join();
  EXPECT_THROW(Completion("a", "b").pending().then(Exec{}, 30), base::RunError);
}

}  // namespace
}  // namespace collimate::tensor

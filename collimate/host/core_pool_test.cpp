#include "collimate/host/core_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::host {
namespace {

TEST(CorePool, CoversEveryItemOnce) {
  for (const int threads : {1, 2, 3}) {
    CorePool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const int64_t grain : {0, 1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++base::at(seen, i);
        });
        for (const auto& times : seen) ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(CorePool, RangesBeginAtMultiplesOfTheGrain) {
  CorePool pool(3);
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  pool.parallel_for(100, 7, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  EXPECT_GT(ranges.size(), 3u);
  for (const auto& [begin, end] : ranges) {
    EXPECT_EQ(begin % 7, 0);
    EXPECT_TRUE(end - begin >= 7 || end == 100);
  }
}

// Both threads must be inside at once: each waits for the other.
TEST(CorePool, ThreadsRunAtTheSameTime) {
  CorePool pool(2);
  std::atomic<int> arrived{0};
  std::mutex mutex;
  std::set<std::thread::id> ids;
  pool.parallel_for(2, 1, [&](int64_t, int64_t) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(ids.size(), 2u);
}

TEST(CorePool, NestedCallsRunInTheirTask) {
  CorePool pool(2);
  std::atomic<int64_t> sum{0};
  std::atomic<bool> moved{false};
  pool.parallel_for(8, 1, [&](int64_t, int64_t) {
    const auto here = std::this_thread::get_id();
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != here) moved = true;
      sum += end - begin;
    });
  });
  EXPECT_FALSE(moved);
  EXPECT_EQ(sum % 100, 0);
  EXPECT_GE(sum, 100);
}

TEST(CorePool, FirstExceptionIsRethrownAndThePoolLivesOn) {
  CorePool pool(2);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(100, 1,
                                   [&](int64_t begin, int64_t) {
                                     if (begin >= 10) throw base::RunError("from a task");
                                   }),
                 base::RunError);
    std::atomic<int64_t> total{0};
    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end) { total += end - begin; });
    ASSERT_EQ(total, 100);
  }
}

TEST(CorePool, ManyJobsInARow) {
  CorePool pool(2);
  std::vector<int64_t> values(64, 0);
  for (int round = 0; round < 20000; ++round) {
    pool.parallel_for(64, 8, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) base::at(values, i) += i;
    });
  }
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(base::at(values, i), i * 20000);
}

// Ranks as threads, each with its pool, more threads than cores: every one ends.
TEST(CorePool, FourPoolsOfTwoMakeProgress) {
  std::vector<std::thread> ranks;
  std::atomic<int> finished{0};
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&finished] {
      CorePool pool(2);
      std::vector<int64_t> values(256, 0);
      for (int round = 0; round < 500; ++round) {
        pool.parallel_for(256, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++base::at(values, i);
        });
      }
      if (std::accumulate(values.begin(), values.end(), int64_t{0}) == 256 * 500) ++finished;
    });
  }
  for (auto& rank : ranks) rank.join();
  EXPECT_EQ(finished, 4);
}

// While one job holds the pool, a second caller must not touch it: its loop is one call in its own thread.
TEST(CorePool, SecondCallerRunsSerially) {
  CorePool pool(2);
  std::atomic<bool> started{false};
  std::atomic<bool> second_done{false};
  int calls = 0;
  std::thread second([&] {
    while (!started) std::this_thread::yield();
    pool.parallel_for(50, 1, [&](int64_t begin, int64_t end) { calls += begin == 0 && end == 50 ? 1 : 100; });
    second_done = true;
  });
  std::atomic<int64_t> total{0};
  pool.parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    started = true;
    while (!second_done) std::this_thread::yield();
    total += end - begin;
  });
  second.join();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(total, 2);
}

TEST(CorePool, RefusesNoThreads) { EXPECT_THROW(CorePool(0), base::InputError); }

}  // namespace
}  // namespace collimate::host

#include "collimate/base/queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

namespace collimate::base {
namespace {

const QueueNames kNames{"samples", "trainer", "rollout"};

TEST(Queue, FirstInFirstOutOfMovableItems) {
  Queue<std::unique_ptr<int>> queue(3, kNames);
  for (int i = 0; i < 3; ++i) queue.push(std::make_unique<int>(i), Deadline::never());
  auto extra = std::make_unique<int>(9);
  EXPECT_FALSE(queue.try_push(extra));
  EXPECT_NE(extra, nullptr) << "a refused item stays with the caller";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(**queue.pop(Deadline::never()), i);
  EXPECT_EQ(queue.try_pop(), std::nullopt);
}

TEST(Queue, ExpirySaysWhoWaitsForWhom) {
  Queue<int> queue(2, kNames);
  ManualClock clock;
  const Deadline passed = Deadline::after(0.01);
  clock.advance(0.01);
  EXPECT_EQ(message_of<RunError>([&] { queue.pop(passed); }),
            "[queue samples] expected an item from rollout within 0.01 s, got none: trainer waits for rollout");
  queue.push(1, Deadline::never());
  queue.push(2, Deadline::never());
  EXPECT_EQ(message_of<RunError>([&] { queue.push(3, Deadline::after(0)); }),
            "[queue samples] expected trainer to take an item within 0 s, got none taken: rollout waits for trainer, "
            "all 2 places are full");
  EXPECT_EQ(queue.size(), 2u);
}

TEST(Queue, CloseDrainsThenEnds) {
  Queue<int> queue(2, kNames);
  queue.push(1, Deadline::never());
  queue.close();
  EXPECT_EQ(queue.pop(Deadline::never()), 1);
  EXPECT_EQ(queue.pop(Deadline::never()), std::nullopt);
  EXPECT_EQ(message_of<RunError>([&] { queue.push(2, Deadline::never()); }),
            "[queue samples] expected rollout to push while it is open, got a closed queue");
}

TEST(Queue, AbortWakesEveryWaiterWithTheFirstCause) {
  Queue<int> full(1, kNames);
  Queue<int> empty(1, kNames);
  full.push(1, Deadline::never());
  std::string causes[2];
  std::thread pusher([&] { causes[0] = message_of<RunError>([&] { full.push(2, Deadline::never()); }); });
  std::thread popper([&] { causes[1] = message_of<RunError>([&] { empty.pop(Deadline::never()); }); });
  for (Queue<int>* queue : {&full, &empty}) {
    queue->abort(std::make_exception_ptr(RunError("rank 1 died")));
    queue->abort(std::make_exception_ptr(RunError("a later cause")));
  }
  pusher.join();
  popper.join();
  EXPECT_EQ(causes[0], "rank 1 died");
  EXPECT_EQ(causes[1], "rank 1 died");
  EXPECT_EQ(message_of<RunError>([&] { full.try_pop(); }), "rank 1 died");
}

TEST(Queue, ManyThreadsPassEveryItemOnce) {
  constexpr int kItems = 400;
  Queue<int> queue(1, kNames);
  std::vector<std::thread> threads;
  for (int part = 0; part < 3; ++part) {
    threads.emplace_back([&queue, part] {
      for (int i = part; i < kItems; i += 3) queue.push(i, Deadline::after(60));
    });
  }
  std::vector<int> got[2];
  for (auto& mine : got) {
    threads.emplace_back([&] {
      while (const auto item = queue.pop(Deadline::after(60))) mine.push_back(*item);
    });
  }
  for (int i = 0; i < 3; ++i) threads[i].join();
  queue.close();
  for (int i = 3; i < 5; ++i) threads[i].join();
  std::multiset<int> all(got[0].begin(), got[0].end());
  all.insert(got[1].begin(), got[1].end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kItems));
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), static_cast<size_t>(kItems));
}

TEST(Deadline, RenewedByProgress) {
  ManualClock clock;
  EXPECT_FALSE(Deadline::never().expired());
  EXPECT_EQ(Deadline::never().remaining_milliseconds(), -1);
  EXPECT_TRUE(Deadline::after(0).expired());
  EXPECT_EQ(Deadline::after(0).remaining_milliseconds(), 0);
  EXPECT_GT(Deadline::after(1e300).remaining_milliseconds(), 1000);
  Heartbeat heartbeat;
  const Deadline deadline = Deadline::after_last_beat(1000, heartbeat);
  const auto before = deadline.at();
  clock.advance(0.002);
  heartbeat.beat();
  EXPECT_GT(deadline.at(), before);
  Deadline own = Deadline::after(1000);
  const auto first = own.at();
  clock.advance(0.002);
  own.renew();
  EXPECT_GT(own.at(), first);
}

// The limit is shorter than the whole wait, but a heartbeat comes inside every limit.
TEST(Deadline, BeatsKeepAWaitAlive) {
  ManualClock clock;
  Heartbeat heartbeat;
  Queue<int> queue(1, kNames);
  std::thread peer([&] {
    for (int i = 0; i < 30; ++i) {
      clock.advance(0.1);
      heartbeat.beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // in which the waiting thread looks at the clock
    }
    queue.push(5, Deadline::never());
  });
  const Deadline deadline = Deadline::after_last_beat(0.25, heartbeat);
  EXPECT_EQ(message_of<RunError>([&] { EXPECT_EQ(queue.pop(deadline), 5); }), "");
  peer.join();
}

}  // namespace
}  // namespace collimate::base

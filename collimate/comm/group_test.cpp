#include "collimate/comm/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "tests/support/comm/ranks.h"

namespace collimate::comm {
namespace {

// Keeps this thread, and those it starts, to two of the cores it may run on; its end gives the others back.
class TwoCores : private base::Immovable {
 public:
  TwoCores() {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t two;
    CPU_ZERO(&two);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &two);
    limited_ = ::sched_setaffinity(0, sizeof two, &two) == 0;
  }
  ~TwoCores() {
    if (limited_) ::sched_setaffinity(0, sizeof before_, &before_);
  }

 private:
  cpu_set_t before_;
  bool limited_ = false;
};

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, AllReduceSumsByTheTree) {
  int size = GetParam();
  std::vector<std::vector<float>> results(static_cast<size_t>(size));
  auto value = [](int rank, size_t i) { return 1.0F / static_cast<float>(3 + rank * 7 + static_cast<int>(i)); };
  with_ranks(size, "sum", [&](Group& group) {
    std::vector<float> mine(1000);
    for (size_t i = 0; i < mine.size(); ++i) mine[i] = value(group.rank(), i);
    group.all_reduce(mine);
    base::at(results, group.rank()) = mine;
  });
  for (size_t i = 0; i < 1000; ++i) {
    float sum = value(0, i);
    if (size == 2) sum = value(0, i) + value(1, i);
    if (size == 4) sum = (value(0, i) + value(1, i)) + (value(2, i) + value(3, i));
    for (const auto& result : results) ASSERT_EQ(result[i], sum) << i;
  }
}

TEST_P(Ranks, CollectivesMoveWhatTheySay) {
  int size = GetParam();
  with_ranks(size, "move", [&](Group& group) {
    auto n = static_cast<size_t>(size);
    auto rank = static_cast<size_t>(group.rank());
    std::vector<int> mine = {group.rank() * 10, group.rank() * 10 + 1}, all(2 * n);
    group.all_gather(bytes_of(mine), writable_bytes_of(all));
    for (int r = 0; r < size; ++r) EXPECT_EQ(base::at(all, 2 * r + 1), r * 10 + 1);

    std::vector<float> pieces(3 * n), piece(3);
    std::iota(pieces.begin(), pieces.end(), 0.0F);
    group.reduce_scatter(pieces, piece);
    EXPECT_EQ(piece[1], static_cast<float>(size) * static_cast<float>(3 * rank + 1));

    std::vector<int> word = {group.rank() == size - 1 ? 42 : 0};
    group.broadcast(writable_bytes_of(word), size - 1);
    EXPECT_EQ(word[0], 42);

    std::vector<int> out(n), in(n);
    for (size_t r = 0; r < n; ++r) out[r] = group.rank() * 100 + static_cast<int>(r);
    group.all_to_all(bytes_of(out), writable_bytes_of(in));
    for (size_t r = 0; r < n; ++r) EXPECT_EQ(in[r], static_cast<int>(r) * 100 + group.rank());

    std::vector<float> top = {static_cast<float>(group.rank())};
    group.all_reduce_max(top);
    EXPECT_EQ(top[0], static_cast<float>(size - 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 4));

TEST(Group, SendAndReceiveAroundARing) {
  with_ranks(4, "ring", [](Group& group) {
    int next = (group.rank() + 1) % 4, previous = (group.rank() + 3) % 4;
    std::vector<int> mine = {group.rank()}, got = {-1};
    for (int turn = 0; turn < 20; ++turn) {
      if (group.rank() % 2 == 0) {
        group.send(bytes_of(mine), next);
        group.receive(writable_bytes_of(got), previous);
      } else {
        group.receive(writable_bytes_of(got), previous);
        group.send(bytes_of(mine), next);
      }
      EXPECT_EQ(got[0], previous);
    }
  });
}

// Four ranks of which rank 2 aborts while the others are in `wait`, or come to it later, that needs it too. Time stands
// still, so that no wait ends by its deadline.
void expect_abort_wakes(const std::string& name, const std::function<void(Group&)>& wait) {
  const base::ManualClock clock;
  std::vector<std::string> heard(4);
  std::atomic<int> entering{0};
  const auto body = [&](Group& group) {
    if (group.rank() == 2) {
      while (entering < 3) std::this_thread::yield();
      group.abort("rank 2 ran out of memory");
      return;
    }
    ++entering;
    try {
      wait(group);
    } catch (const base::RunError& error) {
      base::at(heard, group.rank()) = error.what();
    }
  };
  with_ranks(4, name, body);
  for (size_t rank : {0, 1, 3}) EXPECT_EQ(heard[rank], fmt::format("[group {}] rank 2 ran out of memory", name));
}

TEST(Group, AbortWakesEveryWaitWithTheCause) {
  const std::map<std::string, std::function<void(Group&, std::vector<float>&)>> waits = {
      {"barrier", [](Group& group, auto&) { group.barrier(); }},
      {"all_reduce", [](Group& group, auto& data) { group.all_reduce(data); }},
      {"all_gather",
       [](Group& group, auto& data) { group.all_gather(bytes_of(data).first(4), writable_bytes_of(data)); }},
      {"broadcast", [](Group& group, auto& data) { group.broadcast(writable_bytes_of(data), 2); }},
      {"receive", [](Group& group, auto& data) { group.receive(writable_bytes_of(data), 2); }},
      {"send", [](Group& group, auto& data) { group.send(bytes_of(data), 2); }}};
  for (const auto& [name, wait] : waits)
    expect_abort_wakes(name, [&wait = wait](Group& group) {
      std::vector<float> data(4, 1.0F);
      wait(group, data);
    });
}

// Eight threads of pools on two cores, of ranks that wait for each other between their loops: every one ends.
TEST(Group, FourRanksWithPoolsOfTwoMakeProgressOnTwoCores) {
  constexpr int kRounds = 300;
  const TwoCores limit;
  ASSERT_LE(host::core_count(), 2);
  std::vector<int> right(4);
  with_ranks(4, "two cores", [&](Group& group) {
    host::CorePool pool(2);
    std::vector<float> values(256);
    for (int round = 0; round < kRounds; ++round) {
      pool.parallel_for(256, 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          base::at(values, i) = static_cast<float>(group.rank() * 1000 + round + static_cast<int>(i));
      });
      group.all_reduce(values);
      bool summed = true;
      for (int i = 0; i < 256; ++i)
        summed = summed && base::at(values, i) == static_cast<float>(6000 + 4 * (round + i));
      if (summed) ++base::at(right, group.rank());
    }
  });
  EXPECT_EQ(right, std::vector<int>(4, kRounds));
}

TEST(Group, AnExpiredWaitNamesWhoIsMissingAndAbortsTheGroup) {
  base::ManualClock clock;
  std::vector<std::string> heard(2);
  std::atomic<bool> over{false};
  with_ranks(2, "late", [&](Group& group) {
    if (group.rank() == 1) {
      while (!over) clock.advance(1);
    }
    try {
      group.barrier();
    } catch (const base::RunError& error) {
      base::at(heard, group.rank()) = error.what();
    }
    over = true;
  });
  EXPECT_EQ(heard[0],
            "[group late] rank 0 waited in barrier for rank 1: no progress of any rank for 20 s "
            "(run.deadline_seconds)");
  EXPECT_EQ(heard[1], heard[0]);
}

// Rank 1 comes after twenty times the deadline; its beats are closer than that.
TEST(Group, ABeatRenewsTheWaitsOfTheOthers) {
  base::ManualClock clock;
  std::vector<float> sums(2);
  with_ranks(2, "slow", [&](Group& group) {
    if (group.rank() == 1)
      for (int i = 0; i < 40; ++i) {
        clock.advance(10);
        group.beat();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));  // in which the waiting rank looks at the clock
      }
    std::vector<float> values = {1.0F};
    group.all_reduce(values);
    base::at(sums, group.rank()) = values[0];
  });
  EXPECT_EQ(sums, (std::vector<float>{2, 2}));
}

// Ranks that leave at an abort free their buffers at once: AddressSanitizer sees a rank that still reads one.
TEST(Group, NobodyReadsTheBuffersOfARankThatLeft) {
  constexpr int kRounds = 60, kRanks = 4;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> begun{0};
    std::atomic<Group*> one{nullptr};
    std::atomic<bool> returned{false};
    std::vector<std::string> heard(kRanks);
    std::thread outside([&] {
      while (one == nullptr || begun < kRanks * (1 + round % 3)) std::this_thread::yield();
      one.load()->abort("stopped from outside");
      returned = true;
    });
    with_ranks(kRanks, fmt::format("stress {}", round), [&](Group& group) {
      if (group.rank() == 0) one = &group;
      const auto n = static_cast<size_t>(100000 + 1000 * round);
      try {
        for (;; ++begun) {
          auto mine = std::make_unique<std::vector<float>>(n, 1.0F),
               all = std::make_unique<std::vector<float>>(n * kRanks),
               other = std::make_unique<std::vector<float>>(n * kRanks);
          group.all_reduce(*mine);
          group.all_gather(bytes_of(*mine), writable_bytes_of(*all));
          group.reduce_scatter(*all, *mine);
          group.all_to_all(bytes_of(*all), writable_bytes_of(*other));
          group.broadcast(writable_bytes_of(*mine), 1);
        }
      } catch (const base::RunError& error) {
        base::at(heard, group.rank()) = error.what();
      }
      while (!returned) std::this_thread::yield();  // `one` lives until then
    });
    outside.join();
    for (const std::string& text : heard) EXPECT_EQ(text, fmt::format("[group stress {}] stopped from outside", round));
  }
}

// One collective of those that read other ranks' memory, with buffers of its own that an exception frees.
void collective(Group& group, uint64_t kind, size_t count) {
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<float> few(count, 1.0F), many(count * ranks, 1.0F), more(count * ranks);
  const int peer = group.rank() ^ 1;
  switch (kind % 7) {
    case 0:
      group.all_reduce(few);
      break;
    case 1:
      group.all_reduce_max(few);
      break;
    case 2:
      group.reduce_scatter(many, few);
      break;
    case 3:
      group.all_gather(bytes_of(few), writable_bytes_of(many));
      break;
    case 4:
      group.broadcast(writable_bytes_of(few), static_cast<int>(count % ranks));
      break;
    case 5:
      group.all_to_all(bytes_of(many), writable_bytes_of(more));
      break;
    default:
      group.rank() % 2 == 0 ? group.send(bytes_of(few), peer) : group.receive(writable_bytes_of(few), peer);
  }
}

// Rank 3 goes away after some random collectives; time passes the deadline while the others are anywhere in the next.
TEST(Group, ADeadlineThatExpiresInAnyCollectiveEndsEveryRankAlike) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    base::ManualClock clock;
    std::vector<std::string> heard(4);
    std::atomic<int> joined{0}, ended{0};
    with_ranks(4, "expired", [&](Group& group) {
      const auto rank = static_cast<size_t>(group.rank());
      std::mt19937 draw(seed);
      for (++joined; joined < 4;) std::this_thread::yield();
      try {
        for (uint32_t turn = 0; rank != 3 || turn < seed % 5; ++turn) {
          const uint64_t kind = draw();
          collective(group, kind, 1 + draw() % 20000);
        }
        while (ended < 3) clock.advance(1);
      } catch (const base::RunError& error) {
        heard[rank] = error.what();
        ++ended;
      }
    });
    EXPECT_THAT(heard[0], testing::HasSubstr("no progress of any rank for 20 s")) << seed;
    EXPECT_EQ(heard, (std::vector<std::string>{heard[0], heard[0], heard[0], ""})) << seed;
  }
}

// Rank 0 finds the other size when it has copied its own buffer, which ranks 2 and 3 may still copy.
TEST(Group, ARankThatFailsInACollectiveFreesNothingThatOthersRead) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> failed{0};
    with_ranks(4, "failed", [&](Group& group) {
      std::vector<float> mine(group.rank() == 1 ? 10 : 1000000, 1.0F), all(mine.size() * 4);
      try {
        group.all_gather(bytes_of(mine), writable_bytes_of(all));
      } catch (const base::RunError&) {
        ++failed;
      }
    });
    EXPECT_EQ(failed, 4);
  }
}

TEST(Group, BuffersOfOtherSizesThanTheGroupNeedsAreRefused) {
  with_ranks(2, "needs", [](Group& group) {
    std::vector<float> three(3), eight(8);
    EXPECT_THROW(group.all_gather(bytes_of(three), writable_bytes_of(eight)), base::RunError);
  });
  with_ranks(2, "needs", [](Group& group) {
    std::vector<float> three(3), four(4);
    EXPECT_THROW(group.reduce_scatter(four, three), base::RunError);
  });
}

TEST(Group, ASendOfAnotherSizeEndsBothRanks) {
  std::vector<std::string> heard(2);
  with_ranks(2, "pair", [&](Group& group) {
    std::vector<float> values(group.rank() == 0 ? 4 : 5);
    try {
      group.rank() == 0 ? group.send(bytes_of(values), 1) : group.receive(writable_bytes_of(values), 0);
    } catch (const base::RunError& error) {
      base::at(heard, group.rank()) = error.what();
    }
  });
  EXPECT_EQ(heard, std::vector<std::string>(2, "[group pair] expected 20 bytes from every rank, got 16"));
}

TEST(Group, BuffersOfDifferentSizesEndEveryRank) {
  std::vector<std::string> heard(3);
  with_ranks(3, "sizes", [&](Group& group) {
    std::vector<float> values(group.rank() == 1 ? 5 : 4, 1.0F);
    try {
      group.all_reduce(values);
    } catch (const base::RunError& error) {
      base::at(heard, group.rank()) = error.what();
    }
  });
  for (const std::string& text : heard)
    EXPECT_THAT(text, testing::StartsWith("[group sizes] expected ")) << "and none waits for its deadline";
}

TEST(Group, NullGroupIsTheIdentity) {
  std::unique_ptr<Group> group = null_group();
  std::vector<float> values = {1, 2, 3}, out(3);
  group->all_reduce(values);
  group->reduce_scatter(values, out);
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3}));
  EXPECT_THROW(group->send(bytes_of(out), 1), base::RunError);
  group->abort("over");
  EXPECT_THROW(group->barrier(), base::RunError);
}

TEST(Group, AnAbsentBackEndSaysWhatThereIs) {
  GroupPlace place;
  place.name = "trainer";
  EXPECT_THROW(nccl_group(place), base::InputError);
  EXPECT_THROW(gloo_group(place), base::InputError);
  EXPECT_THROW(shm_group(place), base::InputError);
}

}  // namespace
}  // namespace collimate::comm

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "tests/support/base/rounds.h"
#include "tests/support/comm/ranks.h"

// Groups that are aborted, whose ranks come late, or with buffers of sizes that differ.
namespace collimate::comm {
namespace {

class FailingGroup : public EachGroup {};

// Four ranks of which rank 2 aborts while the others are in `wait`, or come to it later, that needs it too. Time stands
// still, so that no wait ends by its deadline.
void expect_abort_wakes(const std::string& kind, const std::string& name, const std::function<void(Group&)>& wait) {
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
  with_ranks(4, name, body, kind);
  for (size_t rank : {0, 1, 3}) EXPECT_EQ(heard[rank], fmt::format("[group {}] rank 2 ran out of memory", name));
}

TEST_P(FailingGroup, AbortWakesEveryWaitWithTheCause) {
  const std::map<std::string, std::function<void(Group&, std::vector<float>&)>> waits = {
      {"barrier", [](Group& group, auto&) { group.barrier(); }},
      {"all_reduce", [](Group& group, auto& data) { group.all_reduce(data); }},
      {"all_gather",
       [](Group& group, auto& data) { group.all_gather(bytes_of(data).first(4), writable_bytes_of(data)); }},
      {"all_to_all",
       [](Group& group, auto& data) {
         const std::vector<size_t> bytes(16, sizeof(float));
         std::vector<float> in(4);
         group.all_to_all(bytes_of(data), writable_bytes_of(in), bytes);
       }},
      {"broadcast", [](Group& group, auto& data) { group.broadcast(writable_bytes_of(data), 2); }},
      {"receive", [](Group& group, auto& data) { group.receive(writable_bytes_of(data), 2); }},
      {"send", [](Group& group, auto& data) { group.send(bytes_of(data), 2); }}};
  for (const auto& [name, wait] : waits)
    expect_abort_wakes(GetParam(), name, [&wait = wait](Group& group) {
      std::vector<float> data(4, 1.0F);
      wait(group, data);
    });
}

TEST_P(FailingGroup, AnExpiredWaitNamesWhoIsMissingAndAbortsTheGroup) {
  base::ManualClock clock;
  std::vector<std::string> heard(2);
  std::atomic<bool> over{false};
  run(2, "late", [&](Group& group) {
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
TEST_P(FailingGroup, ABeatRenewsTheWaitsOfTheOthers) {
  base::ManualClock clock;
  std::vector<float> sums(2);
  run(2, "slow", [&](Group& group) {
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

// Ranks that leave at an abort free their buffers at once: AddressSanitizer, which gets all rounds, sees a rank that
// still reads one.
TEST_P(FailingGroup, NobodyReadsTheBuffersOfARankThatLeft) {
  constexpr int kRounds = base::kThreadSanitizer ? 15 : 60, kRanks = 4;
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
    run(kRanks, fmt::format("stress {}", round), [&](Group& group) {
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
TEST_P(FailingGroup, ADeadlineThatExpiresInAnyCollectiveEndsEveryRankAlike) {
  for (uint32_t seed = 0; seed < (base::kThreadSanitizer ? 10 : 40); ++seed) {
    base::ManualClock clock;
    std::vector<std::string> heard(4);
    std::atomic<int> joined{0}, ended{0};
    run(4, "expired", [&](Group& group) {
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
TEST_P(FailingGroup, ARankThatFailsInACollectiveFreesNothingThatOthersRead) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> failed{0};
    run(4, "failed", [&](Group& group) {
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

TEST_P(FailingGroup, BuffersOfOtherSizesThanTheGroupNeedsAreRefused) {
  run(2, "needs", [](Group& group) {
    std::vector<float> three(3), eight(8);
    EXPECT_THROW(group.all_gather(bytes_of(three), writable_bytes_of(eight)), base::RunError);
  });
  run(2, "needs", [](Group& group) {
    std::vector<float> three(3), four(4);
    EXPECT_THROW(group.reduce_scatter(four, three), base::RunError);
  });
}

TEST_P(FailingGroup, ASendOfAnotherSizeEndsBothRanks) {
  std::vector<std::string> heard(2);
  run(2, "pair", [&](Group& group) {
    std::vector<float> values(group.rank() == 0 ? 4 : 5);
    try {
      group.rank() == 0 ? group.send(bytes_of(values), 1) : group.receive(writable_bytes_of(values), 0);
    } catch (const base::RunError& error) {
      base::at(heard, group.rank()) = error.what();
    }
  });
  EXPECT_EQ(heard, std::vector<std::string>(2, "[group pair] expected 20 bytes from every rank, got 16"));
}

TEST_P(FailingGroup, BuffersOfDifferentSizesEndEveryRank) {
  std::vector<std::string> heard(3);
  run(3, "sizes", [&](Group& group) {
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

INSTANTIATE_TEST_SUITE_P(BackEnds, FailingGroup, testing::ValuesIn(back_end_names()));

}  // namespace
}  // namespace collimate::comm

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/host/core_pool.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/rounds.h"
#include "tests/support/comm/forked_ranks.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/comm/two_cores.h"

// Ranks that are processes, some of which are killed.
namespace collimate::comm {
namespace {

// Numbers that no two ranks have alike, and whose sums round.
std::vector<float> numbers(size_t count, int rank, uint32_t seed) {
  std::vector<float> all(count);
  uint32_t state = seed * 64 + static_cast<uint32_t>(rank);
  for (float& value : all) value = 1.0F / static_cast<float>((state = state * 1664525U + 1013904223U) >> 8 | 1U);
  return all;
}

// Gives what a collective leaves on this rank.
std::vector<float> result_of(Group& group, uint32_t kind, size_t count, uint32_t seed) {
  const auto size = static_cast<size_t>(group.size());
  const int last = group.size() - 1;
  std::vector<float> few = numbers(count, group.rank(), seed), many = numbers(count * size, group.rank(), seed);
  std::vector<float> more(count * size);
  switch (kind) {
    case 0:
      group.all_reduce(few);
      return few;
    case 1:
      group.all_reduce_max(few);
      return few;
    case 2:
      group.reduce_scatter(many, few);
      return few;
    case 3:
      group.all_gather(bytes_of(few), writable_bytes_of(more));
      return more;
    case 4:
      group.broadcast(writable_bytes_of(few), last);
      return few;
    case 5:
      group.all_to_all(bytes_of(many), writable_bytes_of(more));
      return more;
    default:
      if (group.rank() == 0) group.send(bytes_of(few), last);
      if (group.rank() == last) group.receive(writable_bytes_of(few), 0);
      return few;
  }
}
constexpr uint32_t kKinds = 7;

// A line for each collective and size, with a checksum of its result.
std::string results_of(Group& group) {
  std::string lines;
  for (const size_t count : {0, 1, 3, 513, 1000, 70001, 200003})
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      const std::vector<float> result = result_of(group, kind, count, kind);
      lines += fmt::format("{} of {}: {:08x}\n", kind, count, host::crc32c(bytes_of(result)));
    }
  return lines;
}

TEST(Processes, EveryCollectiveHasTheBitsOfThreads) {
  for (const int size : {2, 3, 4}) {
    std::vector<std::string> threads(static_cast<size_t>(size));
    with_ranks(size, "bits", [&](Group& group) { base::at(threads, group.rank()) = results_of(group); });
    EXPECT_EQ(run_forked(size, "bits", results_of), threads) << size;
    EXPECT_EQ(std::set<std::string>(threads.begin(), threads.end()).size(), threads.size()) << "and ranks differ";
  }
}

TEST(Processes, FourWithPoolsOfTwoMakeProgressOnTwoCores) {
  constexpr int kRounds = base::rounds(300);
  const TwoCores limit;
  const auto body = [](Group& group) {
    host::CorePool pool(2);
    int right = 0;
    std::vector<float> values(256);
    for (int round = 0; round < kRounds; ++round) {
      pool.parallel_for(256, 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) base::at(values, i) = static_cast<float>(group.rank() + round);
      });
      group.all_reduce(values);
      if (values == std::vector<float>(256, static_cast<float>(6 + 4 * round))) ++right;
    }
    return std::to_string(right);
  };
  EXPECT_EQ(run_forked(4, "two cores", body), std::vector<std::string>(4, std::to_string(kRounds)));
}

TEST(Processes, AnAbortOfOneEndsAll) {
  const auto body = [](Group& group) -> std::string {
    std::vector<float> values(100000, 1.0F);
    if (group.rank() == 2) group.abort("rank 2 ran out of memory");
    for (;;) group.all_reduce(values);
  };
  EXPECT_EQ(run_forked(4, "aborted", body), std::vector<std::string>(4, "[group aborted] rank 2 ran out of memory"));
}

// A long cause is cut between two characters: nobody could write half a one into JSON.
TEST(Processes, ACauseThatIsTooLongIsCut) {
  const auto body = [](Group& group) -> std::string {
    std::string cause;
    for (int i = 0; i < 10000; ++i) cause += "é";
    group.abort(cause);
    group.barrier();
    return "";
  };
  for (const std::string& said : run_forked(2, "cut", body)) {
    ASSERT_GT(said.size(), 10000U);
    EXPECT_LT(said.size(), 20000U);
    EXPECT_EQ(said.substr(said.size() - 2), "é");
  }
}

TEST(Processes, ADeadlineNamesWhoIsMissing) {
  const auto body = [](Group& group) -> std::string {
    if (group.rank() == 1) ::raise(SIGSTOP);
    group.barrier();
    return "";
  };
  ForkedRanks ranks(2, "late", body, 0.3);
  ranks.wait_joined();
  const std::string late =
      "[group late] rank 0 waited in barrier for rank 1: no progress of any rank for 0.3 s (run.deadline_seconds)";
  EXPECT_EQ(ranks.said(0), late);
  ranks.kill(1, SIGCONT);
  EXPECT_EQ(ranks.said(1), late);
}

TEST(Processes, OnesThatEndedAreNamed) {
  const auto body = [](Group& group) -> std::string {
    std::vector<float> values(10);
    group.barrier();
    if (group.rank() == 1) ::raise(SIGKILL);
    group.rank() == 0 ? group.receive(writable_bytes_of(values), 1) : group.barrier();
    return "";
  };
  ForkedRanks ranks(3, "ended", body, 1e6);
  ranks.wait_joined();
  const std::string heard = ranks.said(0);
  EXPECT_THAT(heard, testing::AnyOf(testing::StartsWith("[group ended] rank 0 waited in receive from rank 1: "),
                                    testing::StartsWith("[group ended] rank 2 waited in barrier for rank 0, 1: ")));
  EXPECT_THAT(heard, testing::HasSubstr("the process of rank 1 ("));
  EXPECT_THAT(heard, testing::EndsWith(") has ended"));
  EXPECT_EQ(ranks.said(2), heard);
}

// A rank that did its part and ended is missed by nobody.
TEST(Processes, OneThatEndsAfterItsPartHarmsNobody) {
  const auto body = [](Group& group) -> std::string {
    std::vector<float> values(100, 1.0F);
    group.all_reduce(values);
    if (group.rank() == 3) return "first";
    if (group.rank() == 2) ::usleep(200'000);  // several looks at processes later
    group.rank() == 2 ? group.send(bytes_of(values), 0) : void();
    if (group.rank() == 0) group.receive(writable_bytes_of(values), 2);
    return std::to_string(values[99]);
  };
  const std::string four = std::to_string(4.0F);
  EXPECT_EQ(run_forked(4, "leaves", body, 1e6), (std::vector<std::string>{four, four, four, "first"}));
}

// One rank of four is killed anywhere in random collectives: the others end alike and say who it was.
TEST(Processes, OneKilledAnywhereEndsTheOthers) {
  constexpr int kRounds = base::rounds(50), kRanks = 4;
  std::mt19937 draw(7);
  for (int round = 0; round < kRounds; ++round) {
    const uint32_t seed = draw();
    const auto body = [&](Group& group) -> std::string {
      std::mt19937 same(seed);
      for (;;) {
        const uint32_t kind = same() % kKinds;
        result_of(group, kind, same() % 100000, seed);
      }
    };
    ForkedRanks ranks(kRanks, "killed", body, 1e6);
    ranks.wait_joined();
    ::usleep(draw() % 20'000);
    const int victim = static_cast<int>(draw() % kRanks);
    ranks.kill(victim);
    std::set<std::string> heard;
    for (int rank = 0; rank < kRanks; ++rank)
      if (rank != victim) heard.insert(ranks.said(rank));
    EXPECT_EQ(heard.size(), 1U) << round;
    EXPECT_THAT(*heard.begin(), testing::HasSubstr(fmt::format("the process of rank {} (", victim))) << round;
  }
}

TEST(Processes, ANameIsOfOneGroupAlone) {
  const std::unique_ptr<GroupStore> store = back_end("shm").open_store();
  EXPECT_EQ(back_end("shm").join({"once", store->address(), 0, 1})->size(), 1);
  EXPECT_THROW(back_end("shm").join({"once", store->address(), 0, 1}), base::RunError);
}

TEST(Processes, WhereThereIsNoStoreNobodyJoins) {
  EXPECT_EQ(base::message_of([] {
              back_end("shm").join({"lost", "/proc/self/fd/9999", 0, 2});
            }),
            "[group lost] expected the memory at /proc/self/fd/9999, got No such file or directory; try workers of one "
            "user on one machine");
}

}  // namespace
}  // namespace collimate::comm

#include "collimate/comm/group.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "collimate/base/error.h"

namespace collimate::comm {
namespace {

// Runs body(group) on `size` thread ranks; rethrows nothing: bodies record what they see.
void with_ranks(int size, const std::string& name, const std::function<void(Group&)>& body, double seconds = 20.0) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      GroupPlace place;
      place.name = name;
      place.rank = rank;
      place.size = size;
      place.deadline_seconds = seconds;
      body(*thread_group(place));
    });
  for (std::thread& thread : threads) thread.join();
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, AllReduceSumsByTheTree) {
  int size = GetParam();
  std::vector<std::vector<float>> results(static_cast<size_t>(size));
  auto value = [](int rank, size_t i) { return 1.0F / static_cast<float>(3 + rank * 7 + static_cast<int>(i)); };
  with_ranks(size, "sum", [&](Group& group) {
    std::vector<float> mine(1000);
    for (size_t i = 0; i < mine.size(); ++i) mine[i] = value(group.rank(), i);
    group.all_reduce(mine);
    results[static_cast<size_t>(group.rank())] = mine;
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
    for (int r = 0; r < size; ++r) EXPECT_EQ(all[static_cast<size_t>(2 * r + 1)], r * 10 + 1);

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

TEST(Group, AbortWakesAllWithTheCause) {
  std::vector<std::string> heard(4);
  with_ranks(4, "abort", [&](Group& group) {
    if (group.rank() == 2) {
      group.abort("rank 2 ran out of memory");
      return;
    }
    try {
      group.barrier();
    } catch (const base::RunError& error) {
      heard[static_cast<size_t>(group.rank())] = error.what();
    }
  });
  for (int rank : {0, 1, 3}) EXPECT_EQ(heard[static_cast<size_t>(rank)], "[group abort] rank 2 ran out of memory");
}

TEST(Group, AnExpiredWaitNamesWhoIsMissing) {
  std::string text;
  with_ranks(
      2, "late",
      [&](Group& group) {
        if (group.rank() == 1) return;
        try {
          group.barrier();
        } catch (const base::RunError& error) {
          text = error.what();
        }
      },
      0.05);
  EXPECT_EQ(text, "[group late] rank 0 waited 0.05 s in barrier for rank 1");
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

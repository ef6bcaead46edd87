#include "collimate/comm/group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <tuple>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/rounds.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/comm/two_cores.h"

namespace collimate::comm {
namespace {

class Ranks : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  void run(const std::string& name, const std::function<void(Group&)>& body) const {
    with_ranks(size, name, body, std::get<0>(GetParam()));
  }
  const int size = std::get<1>(GetParam());
};

TEST_P(Ranks, AllReduceSumsByTheTree) {
  auto value = [](int rank, size_t i) { return 1.0F / static_cast<float>(3 + rank * 7 + static_cast<int>(i)); };
  for (const size_t count : {100, 1000, 150001}) {
    std::vector<std::vector<float>> results(static_cast<size_t>(size));
    run("sum", [&](Group& group) {
      std::vector<float> mine(count);
      for (size_t i = 0; i < count; ++i) mine[i] = value(group.rank(), i);
      group.all_reduce(mine);
      base::at(results, group.rank()) = mine;
    });
    for (size_t i = 0; i < count; ++i) {
      float sum = value(0, i);
      if (size == 2) sum = value(0, i) + value(1, i);
      if (size == 4) sum = (value(0, i) + value(1, i)) + (value(2, i) + value(3, i));
      for (const auto& result : results) ASSERT_EQ(result[i], sum) << i << " of " << count;
    }
  }
}

TEST_P(Ranks, CollectivesMoveWhatTheySay) {
  run("move", [&](Group& group) {
    auto n = static_cast<size_t>(size);
    auto rank = static_cast<size_t>(group.rank());
    std::vector<int> mine = {group.rank() * 10, group.rank() * 10 + 1}, all(2 * n);
    group.all_gather(bytes_of(mine), writable_bytes_of(all));
    for (int r = 0; r < size; ++r) EXPECT_EQ(base::at(all, 2 * r + 1), r * 10 + 1);

    std::vector<float> pieces(3 * n), piece(3);
    std::iota(pieces.begin(), pieces.end(), 0.0F);
    group.reduce_scatter(pieces, piece);
    EXPECT_EQ(piece[1], static_cast<float>(size) * static_cast<float>(3 * rank + 1));

    // In place: a rank's piece of the whole is where its sum goes, and from where the others are sent it.
    std::vector<float> whole(3 * n, static_cast<float>(rank + 1));
    const std::span<float> own = std::span(whole).subspan(3 * rank, 3);
    group.reduce_scatter(whole, own);
    for (float& value : own) value *= static_cast<float>(rank + 1);
    group.all_gather(std::as_bytes(own), writable_bytes_of(whole));
    for (size_t i = 0; i < 3 * n; ++i)
      EXPECT_EQ(whole[i], static_cast<float>(n * (n + 1) / 2) * static_cast<float>(i / 3 + 1)) << i;

    std::vector<int> word = {group.rank() == size - 1 ? 42 : 0};
    group.broadcast(writable_bytes_of(word), size - 1);
    EXPECT_EQ(word[0], 42);

    std::vector<int> out(n), in(n);
    for (size_t r = 0; r < n; ++r) out[r] = group.rank() * 100 + static_cast<int>(r);
    group.all_to_all(bytes_of(out), writable_bytes_of(in));
    for (size_t r = 0; r < n; ++r) EXPECT_EQ(in[r], static_cast<int>(r) * 100 + group.rank());

    // Rank f gives t + 1 numbers to rank t, rank 0 many more, but none to the one behind it.
    const auto count = [n](size_t from, size_t to) {
      return to == (from + 1) % n && n > 1 ? 0 : (to + 1) * (from == 0 ? 30000 : 1);
    };
    std::vector<size_t> bytes;
    std::vector<int> given, gotten, expected;
    const auto me = static_cast<size_t>(group.rank());
    for (size_t f = 0; f < n; ++f)
      for (size_t t = 0; t < n; ++t) {
        bytes.push_back(count(f, t) * sizeof(int));
        for (size_t i = 0; i < count(f, t); ++i) {
          const int number = static_cast<int>(i * 16 + f * 4 + t);
          if (f == me) given.push_back(number);
          if (t == me) expected.push_back(number);
        }
      }
    gotten.resize(expected.size());
    group.all_to_all(bytes_of(given), writable_bytes_of(gotten), bytes);
    EXPECT_EQ(gotten, expected);

    std::vector<float> top = {static_cast<float>(group.rank())};
    group.all_reduce_max(top);
    EXPECT_EQ(top[0], static_cast<float>(size - 1));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Combine(testing::ValuesIn(back_end_names()), testing::Values(1, 2, 4)));

TEST_P(EachGroup, SendAndReceiveAroundARing) {
  run(4, "ring", [](Group& group) {
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

// Eight threads of pools on two cores, of ranks that wait for each other between their loops: every one ends.
TEST_P(EachGroup, FourRanksWithPoolsOfTwoMakeProgressOnTwoCores) {
  constexpr int kRounds = base::rounds(300);
  const TwoCores limit;
  ASSERT_LE(host::core_count(), 2);
  std::vector<int> right(4);
  run(4, "two cores", [&](Group& group) {
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

TEST(BackEnds, AnAbsentOneSaysWhatThereIs) {
  const std::string known = fmt::format("{}", fmt::join(back_end_names(), ", "));
  EXPECT_EQ(base::message_of([] { back_end("nccl"); }),
            fmt::format("[back end of collectives] expected one of {}, got nccl", known));
}

INSTANTIATE_TEST_SUITE_P(BackEnds, EachGroup, testing::ValuesIn(back_end_names()));

}  // namespace
}  // namespace collimate::comm

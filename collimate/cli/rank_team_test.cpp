#include "collimate/cli/rank_team.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "tests/support/base/error_of.h"

namespace collimate::cli {
namespace {

using testing::HasSubstr;

comm::Group& tensor_group(const RankPlace& place) { return *place.ranks.tensor.group; }

TEST(RankTeam, RanksHaveTheirPlacesAndGroups) {
  RankTeam team({.tp = 2, .pp = 2, .dp = 2});
  ASSERT_EQ(team.size(), 8);
  std::vector<float> sums(8);
  team.run([&](const RankPlace& place) {
    std::vector<float> value = {static_cast<float>(place.rank)};
    tensor_group(place).all_reduce(value).wait(60);
    sums[static_cast<size_t>(place.rank)] = value[0];
  });
  EXPECT_EQ(sums, (std::vector<float>{1, 1, 5, 5, 9, 9, 13, 13}));
  for (int rank = 0; rank < 8; ++rank) {
    const RankPlace& place = team.place(rank);
    EXPECT_EQ(place.replica, rank / 4);
    EXPECT_EQ(place.leads, rank % 4 == 0) << rank;
    EXPECT_EQ(place.ends, rank % 4 == 2) << rank;
    EXPECT_EQ(place.ranks.stages.place.rank, rank / 2 % 2);
  }
}

TEST(RankTeam, AClockIsTheFirstRanksOfAReplica) {
  RankTeam team({.tp = 2, .pp = 2, .dp = 1});
  std::vector<double> seen(4);
  team.run([&](const RankPlace& place) {
    std::this_thread::sleep_for(std::chrono::milliseconds(place.rank));
    seen[static_cast<size_t>(place.rank)] = place.clock()();
  });
  EXPECT_EQ(seen, std::vector<double>(4, seen.front()));
  EXPECT_EQ(RankTeam({.dp = 2}).place(1).clock(), nullptr);
}

// Whoever waits for the rank in a collective, and whoever is busy by itself.
TEST(RankTeam, AFailureEndsAllRanksAndIsTheFirstCause) {
  for (const int bad : {0, 3}) {
    RankTeam team({.tp = 2, .dp = 2});
    const auto work = [&](const RankPlace& place) {
      if (place.rank == bad) throw base::InputError(fmt::format("rank {} found it", bad));
      while (place.replica != team.place(bad).replica) team.check();
      std::vector<float> value = {1};
      tensor_group(place).all_reduce(value).wait(60);
    };
    EXPECT_EQ(base::message_of<base::InputError>([&] { team.run(work); }), fmt::format("rank {} found it", bad));
    std::atomic<int> ran = 0;
    const std::string later = base::message_of<base::RunError>([&] { team.run([&](const auto&) { ++ran; }); });
    EXPECT_THAT(later, HasSubstr(fmt::format("rank {} found it", bad)));
    EXPECT_EQ(ran, 0);
  }
}

}  // namespace
}  // namespace collimate::cli

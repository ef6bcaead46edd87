#include "collimate/flow/lockstep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/rounds.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/flow/toy_stream.h"

// Ranks as threads, to each of which the same requests come at moments of its own.
namespace collimate::flow {
namespace {

using Request = std::function<void(Lockstep&)>;
using Groups = std::vector<comm::Group*>;

Request fed(std::vector<int64_t> uids) {
  return [uids](Lockstep& stream) {
    Batch rows(static_cast<int64_t>(uids.size()));
    rows.set(batch::kUid, uids);
    stream.feed(rows);
  };
}
void closed(Lockstep& stream) { stream.close(); }
void paused(Lockstep& stream) { stream.pause(); }
void resumed(Lockstep& stream) { stream.resume(); }
void ended(Lockstep& stream) { stream.end(); }

// Rows of three lots, pauses between them.
std::vector<Request> usual_requests() {
  return {fed({1, 2, 3, 4}), paused, resumed, fed({5}), fed({6, 7, 8}), paused, resumed, fed({9}), closed};
}

// One rank's stream. Its steps sum over the first of `groups`, and are an error where the ranks differ.
std::unique_ptr<Lockstep> stream_of(const Groups& groups, std::function<void()> before_step = {}) {
  auto stream = std::make_unique<toy::CountingStream>(std::make_shared<toy::Numbers>(), false, CallInfo{});
  stream->sum_over(groups.front());
  stream->before_step = std::move(before_step);
  return std::make_unique<Lockstep>(std::move(stream), Lockstep::Ranks{groups, false, comm::kDeadlineOfRanks});
}

// Lists what a rank has done: the uids that came out, by step.
using Steps = std::vector<std::vector<int64_t>>;

// A worker's loop: it reads a request when it has nothing to do, and at random moments before.
class Rank {
 public:
  Rank(std::unique_ptr<Lockstep> stream, std::vector<Request> requests, uint32_t seed)
      : stream_(std::move(stream)), requests_(std::move(requests)), random_(seed) {}

  Steps run() {
    while (!stream_->done() && !stream_->ended() && (take_step() || next_ < requests_.size())) read();
    return steps_;
  }

 private:
  bool take_step() {
    pass_time();
    busy_ = stream_->step();
    const Batch rows = stream_->take();
    if (rows.rows() > 0) steps_.push_back(rows.all(batch::kUid));
    return busy_;
  }
  void read() {
    if (next_ == requests_.size() || (busy_ && random_() % 3 != 0)) return;
    pass_time();
    requests_[next_++](*stream_);
  }
  void pass_time() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
  }

  const std::unique_ptr<Lockstep> stream_;
  const std::vector<Request> requests_;
  std::mt19937 random_;
  size_t next_ = 0;
  bool busy_ = false;
  Steps steps_;
};

std::vector<int64_t> all_of(const Steps& steps) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t>& uids : steps) all.insert(all.end(), uids.begin(), uids.end());
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Lockstep, RanksDoTheSameStepsWheneverRequestsCome) {
  constexpr int kRounds = base::rounds(40), kRanks = 3;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Steps> steps(kRanks);
    comm::with_ranks(kRanks, fmt::format("lockstep {}", round), [&](comm::Group& group) {
      const auto seed = static_cast<uint32_t>(round * kRanks + group.rank());
      base::at(steps, group.rank()) = Rank(stream_of({&group}), usual_requests(), seed).run();
    });
    EXPECT_EQ(all_of(steps[0]), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9})) << round;
    for (const Steps& other : steps) EXPECT_EQ(other, steps[0]) << round;
  }
}

// Two of tp by two of pp: each rank has a group with its neighbour along either.
TEST(Lockstep, RanksOfTwoAxesStepTogether) {
  constexpr int kRounds = base::rounds(20), kRanks = 4;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Steps> steps(kRanks);
    comm::with_ranks(kRanks, fmt::format("axes {}", round), [&](comm::Group& all) {
      const int stage = all.rank() / 2, part = all.rank() % 2;
      const auto join = [&](const std::string& axis, int line, int place) {
        return comm::back_end("threads").join(
            {fmt::format("{} {} {}", axis, line, round), "", place, 2, comm::kDeadlineOfRanks});
      };
      const auto pp = join("pp", part, stage), tp = join("tp", stage, part);
      const auto seed = static_cast<uint32_t>(round * kRanks + all.rank());
      base::at(steps, all.rank()) = Rank(stream_of({pp.get(), tp.get()}), usual_requests(), seed).run();
    });
    for (const Steps& other : steps) EXPECT_EQ(other, steps[0]) << round;
    EXPECT_EQ(all_of(steps[0]).size(), 9U) << round;
  }
}

// A stream over rows of its own, whose steps are those of all ranks: without rows it takes part in the others'.
class ApartStream final : public Stream {
 public:
  explicit ApartStream(comm::Group& group)
      : group_(group), own_(std::make_shared<toy::Numbers>(), /*patient=*/false, CallInfo{}) {}
  void feed(const Batch& rows) override { own_.feed(rows); }
  void close() override { own_.close(); }
  void pause() override { own_.pause(); }
  void resume() override { own_.resume(); }
  bool step() override {
    std::vector<float> worked = {own_.step() ? 1.0F : 0.0F};
    group_.all_reduce_max(worked).wait(comm::kDeadlineOfRanks);
    ++steps;
    return worked[0] > 0;
  }
  Batch take() override { return own_.take(); }
  bool done() const override { return own_.done(); }
  void cancel(std::span<const int64_t> uids) override { own_.cancel(uids); }
  int steps = 0;

 private:
  comm::Group& group_;
  toy::CountingStream own_;
};

// A rank is fed many rows, one has few, one none: all make the steps that the first one needs.
TEST(Lockstep, RanksWithRowsOfTheirOwnStepUntilNoneHasAny) {
  constexpr int kRounds = base::rounds(40), kRanks = 3;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Steps> steps(kRanks);
    std::vector<int> counts(kRanks);
    comm::with_ranks(kRanks, fmt::format("apart {}", round), [&](comm::Group& group) {
      std::vector<Request> requests = {fed({2, 5, 8}), paused, resumed, fed({1, 3, 11}), fed({14}), closed};
      if (group.rank() == 1) requests = {fed({3}), paused, resumed, fed({}), fed({6}), closed};
      if (group.rank() == 2) requests = {fed({}), paused, resumed, fed({}), fed({}), closed};
      auto stream = std::make_unique<ApartStream>(group);
      const ApartStream& seen = *stream;
      auto together = std::make_unique<Lockstep>(std::move(stream),
                                                 Lockstep::Ranks{{&group}, /*apart=*/true, comm::kDeadlineOfRanks});
      const auto seed = static_cast<uint32_t>(round * kRanks + group.rank());
      Rank rank(std::move(together), requests, seed);
      base::at(steps, group.rank()) = rank.run();
      base::at(counts, group.rank()) = seen.steps;
    });
    EXPECT_EQ(all_of(steps[0]), (std::vector<int64_t>{1, 2, 3, 5, 8, 11, 14})) << round;
    EXPECT_EQ(all_of(steps[1]), (std::vector<int64_t>{3, 6})) << round;
    EXPECT_TRUE(steps[2].empty()) << round;
    for (const int count : counts) EXPECT_EQ(count, counts[0]) << round;
  }
}

TEST(Lockstep, OneThatIsToldToEndEndsAll) {
  constexpr int kRounds = base::rounds(40), kRanks = 3;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Steps> steps(kRanks);
    comm::with_ranks(kRanks, fmt::format("end {}", round), [&](comm::Group& group) {
      std::vector<Request> requests = usual_requests();
      const auto place = requests.begin() + round % 9;
      requests.insert(place, ended);
      // Requests after that are never read, and one rank is not even told.
      if (group.rank() == round % kRanks) requests.erase(requests.begin() + round % 9, requests.end());
      if (group.rank() == round % kRanks) requests.push_back(fed({10}));
      const auto seed = static_cast<uint32_t>(round * kRanks + group.rank());
      base::at(steps, group.rank()) = Rank(stream_of({&group}), requests, seed).run();
    });
    for (const Steps& other : steps) EXPECT_EQ(other, steps[0]) << round;
  }
}

// The one that fails aborts the group, as its worker does; the others have its cause.
TEST(Lockstep, WhereOneFailsTheOthersHaveItsCause) {
  const auto fails = [](comm::Group& group) {
    const auto body = [&] {
      int steps = 0;
      Rank(stream_of({&group},
                     [&] {
                       if (group.rank() == 1 && ++steps == 2) throw base::GuardError("[test] out of luck");
                     }),
           usual_requests(), static_cast<uint32_t>(group.rank()))
          .run();
    };
    if (group.rank() != 1) return base::message_of<comm::AbortedByPeer>(body);
    const std::string cause = base::message_of<base::GuardError>(body);
    group.abort(cause);
    return cause;
  };
  std::vector<std::string> heard(3);
  comm::with_ranks(3, "fails", [&](comm::Group& group) { base::at(heard, group.rank()) = fails(group); });
  EXPECT_EQ(heard, (std::vector<std::string>{"[group fails] [test] out of luck", "[test] out of luck",
                                             "[group fails] [test] out of luck"}));
}

// Nobody else is there: a border would never end.
TEST(Lockstep, WithoutARequestOrMoreToDoARankStaysAway) {
  comm::with_ranks(2, "idle", [&](comm::Group& group) {
    const std::unique_ptr<Lockstep> stream = stream_of({&group});
    if (group.rank() == 0) {
      for (int i = 0; i < 10; ++i) EXPECT_FALSE(stream->step());
    }
    fed({1})(*stream);
    while (stream->step()) continue;
    EXPECT_EQ(stream->take().rows(), 1);
    if (group.rank() == 1) {
      for (int i = 0; i < 10; ++i) EXPECT_FALSE(stream->step());
    }
    EXPECT_FALSE(stream->behind());
    stream->pause();
    EXPECT_TRUE(stream->behind());
    stream->step();
    EXPECT_FALSE(stream->behind());
  });
}

}  // namespace
}  // namespace collimate::flow

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/train/pipeline.h"

namespace collimate::train {
namespace {

// "r0a F0a s0a g0a B0a t0a": receive, forward, send, receive gradient, backward, send gradient, in run a, b, …
std::string text_of_runs(const std::vector<StageStep>& steps) {
  std::string text;
  for (const StageStep& step : steps)
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", "rFsgBt"[static_cast<int>(step.act)], step.micro_batch,
                        "abcd"[step.run]);
  return text;
}

// The passes alone, in their order.
std::string passes_text(std::vector<StageStep> steps) {
  std::erase_if(
      steps, [](const StageStep& step) { return step.act != StageAct::kForward && step.act != StageAct::kBackward; });
  return text_of_runs(steps);
}

TEST(Interleaved, RanksTakeAsManyMicroBatchesAsThereAreRanksThroughEachRun) {
  EXPECT_EQ(passes_text(interleaved({0, 2, 2}, 4)), "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  EXPECT_EQ(passes_text(interleaved({1, 2, 2}, 4)), "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
  EXPECT_EQ(passes_text(interleaved({0, 2, 2}, 3)), "F0a F1a F0b F1b F2a B0b B1b F2b B0a B1a B2b B2a");
  EXPECT_EQ(text_of_runs(interleaved({0, 2, 2}, 2)),
            "F0a s0a F1a s1a r0b F0b s0b r1b F1b s1b g0b B0b t0b g1b B1b t1b g0a B0a g1a B1a");
  EXPECT_EQ(text_of_runs(interleaved({1, 2, 2}, 2)),
            "r0a F0a r1a s0a F1a r0b s1a F0b r1b B0b t0b F1b B1b g0a t1b B0a g1a t0a B1a t1a");
  EXPECT_EQ(text_of_runs(interleaved_forwards({1, 2, 2}, 3)),
            "r0a F0a r1a s0a F1a r0b s1a F0b r1b F1b r2a F2a s2a r2b F2b");
}

// Rendezvous runs the steps of all ranks, where each transfer waits for the other side, and gives the time at which the
// last one ends: a forward of all of a rank's blocks takes 1, their backward 2, a transfer nothing.
class Rendezvous {
 public:
  explicit Rendezvous(int runs) : runs_(runs) {}

  double end_of(const std::vector<std::vector<StageStep>>& ranks) {
    steps_ = ranks;
    next_.assign(ranks.size(), 0);
    time_.assign(ranks.size(), 0);
    bool moves = true;
    while (std::exchange(moves, false))
      for (size_t r = 0; r < ranks.size(); ++r) moves = moves || step(r);
    for (size_t r = 0; r < ranks.size(); ++r) EXPECT_TRUE(at_end(r)) << "rank " << r << " waits for ever";
    return *std::ranges::max_element(time_);
  }

 private:
  bool at_end(size_t rank) const { return next_[rank] == steps_[rank].size(); }
  bool step(size_t rank) {
    if (at_end(rank)) return false;
    const StageStep now = steps_[rank][next_[rank]];
    if (now.act == StageAct::kForward || now.act == StageAct::kBackward) {
      time_[rank] += (now.act == StageAct::kForward ? 1.0 : 2.0) / runs_;
      ++next_[rank];
      return true;
    }
    if (now.act != StageAct::kSend && now.act != StageAct::kSendGradient) return false;
    const bool forward = now.act == StageAct::kSend;
    const size_t ranks = steps_.size(), to = (rank + (forward ? 1 : ranks - 1)) % ranks;
    if (at_end(to)) return false;
    const int other_run = forward ? now.run + (to == 0 ? 1 : 0) : now.run - (rank == 0 ? 1 : 0);
    const StageStep met{forward ? StageAct::kReceive : StageAct::kReceiveGradient, now.micro_batch, other_run};
    if (steps_[to][next_[to]] != met) return false;
    ++next_[rank], ++next_[to];
    time_[rank] = time_[to] = std::max(time_[rank], time_[to]);
    return true;
  }

  int runs_;
  std::vector<std::vector<StageStep>> steps_;
  std::vector<size_t> next_;
  std::vector<double> time_;
};

// All ranks' steps.
template <class Make>
std::vector<std::vector<StageStep>> of_ranks(int ranks, int runs, const Make& make) {
  std::vector<std::vector<StageStep>> all;
  for (int r = 0; r < ranks; ++r) all.push_back(make(RankRuns{r, ranks, runs}));
  return all;
}

TEST(Interleaved, NoTransferWaitsForEver) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    for (int runs = 2; runs <= 4; ++runs)
      for (int64_t micro_batches = 0; micro_batches <= 11; ++micro_batches) {
        const auto both = of_ranks(ranks, runs, [&](const RankRuns& of) { return interleaved(of, micro_batches); });
        Rendezvous(runs).end_of(both);
        Rendezvous(runs).end_of(
            of_ranks(ranks, runs, [&](const RankRuns& of) { return interleaved_forwards(of, micro_batches); }));
        for (int r = 0; r < ranks; ++r) {
          const MostKept kept = most_kept(base::at(both, r));
          const int64_t most = std::min<int64_t>(runs * micro_batches, 2 * (ranks - r - 1) + (runs - 1) * ranks + 1);
          EXPECT_LE(kept.forwards, most);
          EXPECT_LE(kept.received, ranks);
          if (micro_batches % ranks == 0) {
            EXPECT_EQ(kept.forwards, most) << r << " of " << ranks << " with " << runs << " runs";
          }
        }
      }
}

// The bubble is (p - 1) / v of a micro-batch's passes, where v runs divide them.
TEST(Interleaved, TheBubbleIsShorterByTheNumberOfRuns) {
  for (const int ranks : {2, 4})
    for (const int runs : {2, 3})
      for (const int64_t micro_batches : {2 * ranks, 4 * ranks}) {
        const auto steps = of_ranks(ranks, runs, [&](const RankRuns& of) { return training_steps(of, micro_batches); });
        const auto m = static_cast<double>(micro_batches);
        EXPECT_NEAR(Rendezvous(runs).end_of(steps), 3 * (m + (ranks - 1.0) / runs), 1e-9) << ranks << " " << runs;
        const auto plain = of_ranks(ranks, 1, [&](const RankRuns& of) { return training_steps(of, micro_batches); });
        EXPECT_NEAR(Rendezvous(1).end_of(plain), 3 * (m + ranks - 1.0), 1e-9) << ranks;
      }
}

// Gradients have one rank's sums: in each run both passes go through the micro-batches in their order.
TEST(Interleaved, PassesOfARunAreInTheOrderOfMicroBatches) {
  for (int r = 0; r < 3; ++r) {
    std::map<std::pair<StageAct, int>, int64_t> next;
    for (const StageStep& step : interleaved({r, 3, 2}, 7)) {
      const int64_t expected = next[{step.act, step.run}]++;
      EXPECT_EQ(step.micro_batch, expected);
    }
    for (const int run : {0, 1}) {
      const int64_t forwards = next[{StageAct::kForward, run}], backwards = next[{StageAct::kBackward, run}];
      EXPECT_EQ(forwards, 7);
      EXPECT_EQ(backwards, 7);
    }
  }
}

// The memory plan counts so for any number of micro-batches.
TEST(Interleaved, MoreThanFourRoundsKeepNoMore) {
  for (int ranks = 2; ranks <= 5; ++ranks)
    for (int runs = 2; runs <= 4; ++runs)
      for (int r = 0; r < ranks; ++r) {
        const MostKept four = most_kept(interleaved({r, ranks, runs}, int64_t{4} * ranks)),
                       scored = most_kept(interleaved_forwards({r, ranks, runs}, int64_t{4} * ranks));
        for (const int64_t more : {int64_t{4} * ranks + 1, int64_t{11} * ranks}) {
          const MostKept kept = most_kept(interleaved({r, ranks, runs}, more));
          EXPECT_LE(kept.forwards, four.forwards);
          EXPECT_LE(kept.received, four.received);
          EXPECT_LE(most_kept(interleaved_forwards({r, ranks, runs}, more)).received, scored.received);
        }
      }
}

}  // namespace
}  // namespace collimate::train

#include "collimate/train/pipeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace collimate::train {
namespace {

// "r0 F0 s0 g0 B0 t0": receive, forward, send, receive gradient, backward, send gradient.
std::string text_of(const std::vector<StageStep>& steps) {
  std::string text;
  for (const StageStep& step : steps)
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", "rFsgBt"[static_cast<int>(step.act)], step.micro_batch);
  return text;
}

TEST(Pipeline, StagesRunAheadOfThoseBehindThem) {
  EXPECT_EQ(text_of(one_forward_one_backward(0, 1, 2)), "F0 B0 F1 B1");
  EXPECT_EQ(text_of(one_forward_one_backward(0, 3, 4)), "F0 s0 F1 s1 F2 g0 s2 B0 F3 g1 s3 B1 g2 B2 g3 B3");
  EXPECT_EQ(text_of(one_forward_one_backward(1, 3, 4)),
            "r0 F0 s0 r1 F1 g0 s1 B0 t0 r2 F2 g1 s2 B1 t1 r3 F3 g2 s3 B2 t2 g3 B3 t3");
  EXPECT_EQ(text_of(one_forward_one_backward(2, 3, 4)), "r0 F0 B0 t0 r1 F1 B1 t1 r2 F2 B2 t2 r3 F3 B3 t3");
  EXPECT_EQ(text_of(one_forward_one_backward(0, 4, 1)), "F0 s0 g0 B0");
  EXPECT_EQ(text_of(forwards(1, 3, 2)), "r0 F0 s0 r1 F1 s1");
}

// A send that meets the receive of a neighbour, of the same micro-batch.
bool meet(const StageStep& of_sender, const StageStep& of_receiver, bool forward) {
  return of_sender.act == (forward ? StageAct::kSend : StageAct::kSendGradient) &&
         of_receiver.act == (forward ? StageAct::kReceive : StageAct::kReceiveGradient) &&
         of_sender.micro_batch == of_receiver.micro_batch;
}

// Runs all stages as far as they come where each transfer waits for the other side; returns the most micro-batches that
// each has kept.
std::vector<size_t> run_to_the_end(std::vector<std::vector<StageStep>> stages) {
  std::vector<size_t> next(stages.size(), 0), most(stages.size(), 0);
  std::vector<std::set<int64_t>> kept(stages.size());
  const auto at_end = [&](size_t s) { return next[s] == stages[s].size(); };
  bool moves = true;
  while (std::exchange(moves, false)) {
    for (size_t s = 0; s < stages.size(); ++s) {
      if (at_end(s)) continue;
      const StageStep step = stages[s][next[s]];
      if (step.act == StageAct::kForward || step.act == StageAct::kBackward) {
        step.act == StageAct::kForward ? void(kept[s].insert(step.micro_batch)) : void(kept[s].erase(step.micro_batch));
        most[s] = std::max(most[s], kept[s].size());
        ++next[s], moves = true;
      }
      for (const bool forward : {true, false}) {
        const size_t to = forward ? s + 1 : s - 1;
        if (to >= stages.size() || at_end(to) || at_end(s)) continue;
        if (meet(stages[s][next[s]], stages[to][next[to]], forward)) ++next[s], ++next[to], moves = true;
      }
    }
  }
  for (size_t s = 0; s < stages.size(); ++s) EXPECT_TRUE(at_end(s)) << "stage " << s << " waits for ever";
  return most;
}

TEST(Pipeline, NoTransferWaitsForEver) {
  for (int stages = 1; stages <= 6; ++stages)
    for (int64_t micro_batches = 0; micro_batches <= 9; ++micro_batches) {
      std::vector<std::vector<StageStep>> both, ahead;
      for (int s = 0; s < stages; ++s) {
        both.push_back(one_forward_one_backward(s, stages, micro_batches));
        ahead.push_back(forwards(s, stages, micro_batches));
      }
      const std::vector<size_t> most = run_to_the_end(both);
      run_to_the_end(ahead);
      for (int s = 0; s < stages; ++s)
        EXPECT_EQ(most[static_cast<size_t>(s)], std::min<size_t>(stages - s, micro_batches)) << s << " of " << stages;
    }
}

// Gradients have one stage's sums: both passes go through the micro-batches in their order.
TEST(Pipeline, PassesAreInTheOrderOfMicroBatches) {
  for (int s = 0; s < 4; ++s) {
    std::map<StageAct, int64_t> next;
    for (const StageStep& step : one_forward_one_backward(s, 4, 7)) EXPECT_EQ(step.micro_batch, next[step.act]++);
    EXPECT_EQ(next[StageAct::kForward], 7);
    EXPECT_EQ(next[StageAct::kBackward], 7);
  }
}

}  // namespace
}  // namespace collimate::train

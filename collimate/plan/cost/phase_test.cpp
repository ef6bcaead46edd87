// What phases pay for besides arithmetic: exchanges of tp, ep and pp, and collectives of gradients.
#include "collimate/plan/cost/phase.h"

#include <gtest/gtest.h>

#include "collimate/plan/cost/collective.h"

namespace collimate::plan {
namespace {

Job phase_job(const char* model, Work work, int devices) {
  return {shape::find_outline(model), work, true, find_gpu("A100-80"), 8, devices, {}};
}

PhaseTime time_of(const Job& job, int tp, int pp, int ep, const Constants& c) {
  Execution how;
  how.layout.tp = tp;
  how.layout.pp = pp;
  how.layout.ep = ep;
  return phase_time(job, how, c);
}

// With tp 8 as with dp 8 a device does an eighth of the arithmetic; with tp it exchanges besides.
TEST(Phase, PrefillPaysForWhatLayersExchange) {
  const Job job = phase_job("llama2-13b", Work::kGenerate, 8);
  const Constants c = constants_of("");
  const double alone = time_of(job, 1, 1, 1, c).prefill;
  EXPECT_GT(time_of(job, 8, 1, 1, c).prefill, 1.05 * alone);
  EXPECT_GT(time_of(job, 1, 4, 1, c).prefill, alone * (1 + 1e-6));
  Constants serial = c;
  serial.serial_pipeline = 1;
  EXPECT_GT(time_of(job, 1, 4, 1, serial).prefill, 3.9 * time_of(job, 1, 4, 1, c).prefill);
  const Job experts = phase_job("qwen3-30b-a3b", Work::kGenerate, 8);
  EXPECT_GT(time_of(experts, 1, 1, 8, c).prefill, 1.05 * time_of(experts, 1, 1, 1, c).prefill);
}

TEST(Phase, DecodingPaysForRoutingAndStages) {
  const Constants c = constants_of("");
  const Job experts = phase_job("qwen3-30b-a3b", Work::kGenerate, 8);
  EXPECT_EQ(time_of(experts, 1, 1, 1, c).tensor, 0);
  // A round of 1024 tokens has at least the latency of two all-to-alls in each of 48 layers.
  EXPECT_GT(time_of(experts, 1, 1, 8, c).tensor, 1024 * 48 * 2 * 6.6e-6);
  // A token passes three borders, each with the latency of a send.
  const Job dense = phase_job("llama2-13b", Work::kGenerate, 8);
  EXPECT_EQ(time_of(dense, 1, 1, 1, c).tensor, 0);
  EXPECT_GT(time_of(dense, 1, 4, 1, c).tensor, 1024 * 3 * 8.4e-6);
}

// Experts that no other device holds need no exchange of gradients; of 16 devices two hold the same, on two nodes.
TEST(Phase, GradientsGoToThoseThatHoldTheSame) {
  const Constants c = constants_of("");
  for (const int devices : {8, 16}) {
    const Job job = phase_job("qwen3-30b-a3b", Work::kTrain, devices);
    Execution how;
    how.layout.ep = 8;
    const Held held = held_parameters(job, how);
    const double dense =
        collective_seconds(Collective::kAllReduce, 2 * held.dense, rank_set(devices, 1, 8), job.gpu, c);
    const double experts =
        collective_seconds(Collective::kAllReduce, 2 * held.experts, rank_set(devices / 8, 8, 8), job.gpu, c);
    EXPECT_EQ(experts > 0, devices == 16);
    const double expected = job.load.updates * (1 - c.overlap) * (dense + experts);
    EXPECT_NEAR(train_time(job, how, c).data, expected, 1e-9 * expected);
  }
}

// ZeRO-3 gathers likewise: experts that ep has cut to one holder are at home.
TEST(Phase, ShardsAreGatheredFromThoseThatHoldThem) {
  const Constants c = constants_of("");
  const Job job = phase_job("qwen3-30b-a3b", Work::kScore, 8);
  Execution how;
  how.layout.ep = 8;
  how.layout.zero = 3;
  const double micro_batches = replica_rows(job, how) / micro_batch_rows(job, how);
  const double gather =
      collective_seconds(Collective::kAllGather, 2 * held_parameters(job, how).dense, rank_set(8, 1, 8), job.gpu, c);
  EXPECT_NEAR(score_time(job, how, c).data, micro_batches * (1 - c.overlap) * gather, 1e-9);
}

}  // namespace
}  // namespace collimate::plan

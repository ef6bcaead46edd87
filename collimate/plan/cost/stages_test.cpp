#include "collimate/plan/cost/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/plan/cost/phase.h"
#include "tests/support/plan/cost/sample_job.h"

namespace collimate::plan {
namespace {

using namespace testing_support;  // NOLINT: test only

Execution staged(std::vector<int64_t> layers) {
  Execution how = cut(1, static_cast<int>(layers.size()));
  how.layout.stages = std::move(layers);
  return how;
}

TEST(Stages, AreEqualWhereNothingIsSaid) {
  const Job job = job_of("llama2-7b", Work::kTrain, 4);
  EXPECT_THAT(layers_of_ranks(job, cut(1, 4)), testing::ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(layers_of_ranks(job, staged({5, 9, 9, 9})), testing::ElementsAre(5, 9, 9, 9));
  EXPECT_EQ(unevenness(job, cut(1, 4)), 1);
  EXPECT_EQ(unevenness(job, staged({5, 9, 9, 9})), 9.0 / 8);
}

// Equal stages cost the same whether they are said or not, but for the head, which the last one has.
TEST(Stages, EqualOnesCostTheSame) {
  Job job = job_of("llama2-7b", Work::kTrain, 4);
  job.language_head = false;
  const Constants c = constants_of("");
  for (const Work work : {Work::kTrain, Work::kScore, Work::kGenerate}) {
    job.work = work;
    const double even = phase_time(job, cut(1, 4), c).total();
    EXPECT_NEAR(phase_time(job, staged({8, 8, 8, 8}), c).total(), even, 1e-9 * even);
    const double bytes = memory_of(job, cut(1, 4), c, 8).total();
    EXPECT_NEAR(memory_of(job, staged({8, 8, 8, 8}), c, 8).total(), bytes, 1e-9 * bytes);
  }
}

// Every micro-batch waits for the slowest stage.
TEST(Stages, TheSlowestSetsThePace) {
  Job job = job_of("llama2-7b", Work::kTrain, 4);
  job.language_head = false;
  const Constants c = constants_of("");
  for (const Work work : {Work::kTrain, Work::kScore}) {
    job.work = work;
    const PhaseTime even = phase_time(job, cut(1, 4), c), uneven = phase_time(job, staged({5, 9, 9, 9}), c);
    EXPECT_NEAR(uneven.compute, 9.0 / 8 * even.compute, 1e-9 * even.compute);
    EXPECT_LT(uneven.bubble, even.bubble);  // the others are faster: 5 + 9 + 9 against 3 times 8
  }
  job.work = Work::kGenerate;
  job.load.rows = 64;
  const PhaseTime even = phase_time(job, cut(1, 4), c), uneven = phase_time(job, staged({5, 9, 9, 9}), c);
  EXPECT_NEAR(uneven.prefill - even.prefill, even.prefill / 8, 0.02 * even.prefill);
  Constants serial = c;  // of stages that take turns the sum counts
  serial.serial_pipeline = 1;
  const double in_turn = phase_time(job, cut(1, 4), serial).total();
  EXPECT_NEAR(phase_time(job, staged({5, 9, 9, 9}), serial).total(), in_turn, 1e-9 * in_turn);
}

// The last stage computes the head: fewer layers there make it as fast as the others.
TEST(Stages, TheHeadIsOnTheLast) {
  const Job job = job_of("llama2-7b", Work::kTrain, 4);
  const Constants c = constants_of("");
  const auto seconds = [&](std::vector<int64_t> layers) {
    return phase_time(job, staged(std::move(layers)), c).compute;
  };
  EXPECT_LT(seconds({8, 8, 9, 7}), seconds({7, 8, 8, 9}));
}

// A stage keeps the activations of as many micro-batches as there are stages from it on.
TEST(Stages, MemoryIsThatOfTheFullestStage) {
  Job job = job_of("llama2-7b", Work::kTrain, 4);
  job.language_head = false;
  const Constants c = constants_of("");
  Execution how = staged({8, 8, 8, 8});
  how.layout.micro_batch = 1;
  const auto kept = [&](std::vector<int64_t> layers) {
    how.layout.stages = std::move(layers);
    return item(memory_of(job, how, c), "activations");
  };
  const double ends = kept({8, 8, 8, 8}) - (kept({9, 8, 8, 7}) - kept({8, 8, 8, 8})) * 8;  // of no layer
  const double layer = (kept({9, 8, 8, 7}) - kept({8, 8, 8, 8})) / 4;
  EXPECT_NEAR(kept({5, 9, 9, 9}), ends + 3 * 9 * layer, 1e-9 * kept({5, 9, 9, 9}));
  const double table = shape::table_parameters(job.model);
  how.layout.stages = {4, 10, 9, 9};
  EXPECT_NEAR(item(memory_of(job, how, c), "weights"),
              job.gpu.weight_bytes * shape::block_parameters(job.model) * 10 / 32, job.gpu.weight_bytes * table / 100);
}

// With v stages a rank waits for 1 / v of the time, sends v times as often, and keeps more micro-batches.
TEST(Stages, SeveralOfARankShortenTheBubble) {
  Job job = job_of("llama2-7b", Work::kTrain, 4);
  job.language_head = false;
  Constants c = constants_of("");
  Execution one = cut(1, 4), interleaved = one;
  one.layout.micro_batch = interleaved.layout.micro_batch = 1;
  interleaved.layout.virtual_stages = 2;
  for (const Work work : {Work::kTrain, Work::kScore}) {
    job.work = work;
    const PhaseTime plain = phase_time(job, one, c), often = phase_time(job, interleaved, c);
    EXPECT_EQ(often.compute, plain.compute);
    EXPECT_NEAR(often.tensor, 2 * plain.tensor, 1e-9 * plain.tensor);
    EXPECT_LT(often.bubble, 0.51 * plain.bubble + plain.tensor);
    EXPECT_GT(often.bubble, 0.5 * plain.bubble);  // by the sends
  }
  job.work = Work::kTrain;
  EXPECT_EQ(kept_micro_batches(one, 100), 4);
  EXPECT_EQ(kept_micro_batches(interleaved, 100), (2 * 3 + 4 + 1) / 2.0);
  EXPECT_EQ(kept_micro_batches(interleaved, 2), 2);
  EXPECT_GT(item(memory_of(job, interleaved, c), "activations"), item(memory_of(job, one, c), "activations"));
  interleaved.layout.stages = {3, 4, 4, 4, 3, 4, 5, 5};
  EXPECT_THAT(layers_of_ranks(job, interleaved), testing::ElementsAre(6, 8, 9, 9));
}

TEST(Stages, LayersBetweenTheCutsMove) {
  const Job job = job_of("llama2-7b", Work::kTrain, 4);
  EXPECT_EQ(layers_to_move(job, cut(1, 4), cut(1, 4)), 0);
  EXPECT_EQ(layers_to_move(job, staged({5, 9, 9, 9}), staged({5, 9, 9, 9})), 0);
  EXPECT_EQ(layers_to_move(job, staged({16, 16}), staged({20, 12})), 4);
  EXPECT_EQ(layers_to_move(job, cut(1, 4), staged({5, 9, 9, 9})), 3);
  Execution runs = cut(1, 2);
  runs.layout.virtual_stages = 2;
  EXPECT_EQ(layers_to_move(job, runs, runs), 0);
  EXPECT_EQ(layers_to_move(job, cut(1, 2), runs), 8);  // the middle quarters change places
  const Constants c = constants_of("");
  EXPECT_EQ(transfer_seconds(job, cut(1, 2), job, cut(1, 2), true, c), 0);
  EXPECT_GT(transfer_seconds(job, staged({16, 16}), job, staged({20, 12}), true, c), 0);
}

}  // namespace
}  // namespace collimate::plan

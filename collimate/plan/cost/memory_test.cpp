// Adapters, what ZeRO gathers and scatters, the passing of new weights, and what a recipe's modules set.
#include "collimate/plan/cost/memory.h"

#include <gtest/gtest.h>

#include "collimate/plan/cost/phase.h"
#include "tests/support/plan/cost/sample_job.h"

namespace collimate::plan {
namespace {

using namespace testing_support;  // NOLINT: test only

// A and B beside q, k, v and o of 4096 x 4096 and three matrices of 4096 x 11008 in 32 layers; a generator apart holds
// them too. Routed experts have none.
TEST(MemoryItems, AdaptersAreHeldBesideTheWeights) {
  const Constants c = constants_of("");
  Execution lora = cut(1, 1);
  lora.lora_rank = 16;
  const double elements = 32.0 * 16 * (4 * (4096 + 4096) + 3 * (4096 + 11008));
  const MemoryBound trains = memory_of(job_of("llama2-7b", Work::kTrain, 1), lora, c);
  EXPECT_EQ(item(trains, "adapters"), 2 * elements);
  EXPECT_EQ(item(trains, "gradients"), 4 * elements);
  EXPECT_EQ(item(trains, "optimizer"), 12 * elements);
  EXPECT_EQ(item(memory_of(job_of("llama2-7b", Work::kGenerate, 1), lora, c), "adapters"), 2 * elements);
  EXPECT_EQ(item(memory_of(job_of("llama2-7b", Work::kTrain, 1), cut(1, 1), c), "adapters"), -1);
  const MemoryBound experts = memory_of(job_of("mixtral-8x7b", Work::kTrain, 1), lora, c);
  EXPECT_EQ(item(experts, "adapters"), 2 * 32.0 * 16 * (2 * (4096 + 4096) + 2 * (4096 + 1024)));
}

// The vocabulary table of Qwen2.5-0.5B is nine times a layer: both are gathered at once, and with ZeRO 2 and 3 the
// gradients of both are whole before each rank has its share.
TEST(MemoryItems, WhatZeroGathersAndScattersIsCounted) {
  const Constants c = constants_of("");
  const Job job = job_of("qwen2.5-0.5b", Work::kTrain, 8);
  const double table = 151936.0 * 896, layer = 896.0 * 64 * (2 * 14 + 2 * 2) + 3 * 896.0 * 4864;
  const MemoryBound three = memory_of(job, cut(1, 1, 3), c), two = memory_of(job, cut(1, 1, 2), c);
  EXPECT_EQ(item(three, "gathered layers"), 2 * (table + layer));
  EXPECT_EQ(item(three, "gradients on their way"), 2 * (table + layer));
  EXPECT_EQ(item(two, "gradients on their way"), 2 * (table + layer));
  EXPECT_EQ(item(two, "gathered layers"), -1);
  EXPECT_EQ(item(memory_of(job, cut(1, 1, 1), c), "gradients on their way"), -1);
  EXPECT_EQ(item(memory_of(job_of("qwen2.5-0.5b", Work::kTrain, 1), cut(1, 1, 3), c), "gathered layers"), -1);
  // With ep 8 a device holds an eighth of the 128 experts of a routed layer of Qwen3-30B-A3B; its tables are smaller.
  Execution experts = cut(1, 1, 3);
  experts.layout.ep = 8;
  const double routed = 2048.0 * 128 * (2 * 32 + 2 * 4) + 2048.0 * 128 + 128 / 8 * 3 * 2048.0 * 768;
  const double gathered = item(memory_of(job_of("qwen3-30b-a3b", Work::kTrain, 16), experts, c), "gathered layers");
  EXPECT_EQ(gathered, 2 * (routed + 151936.0 * 2048));
}

// New weights pass in two pieces, of which the vocabulary table is the largest; only where they do, and instead of what
// the function needs at work.
TEST(MemoryItems, NewWeightsPassInPieces) {
  const Constants c = constants_of("");
  Job job = job_of("llama3.1-8b", Work::kGenerate, 8);
  EXPECT_TRUE(memory_of(job, cut(1, 1), c, 4).passing.empty());
  job.passes = true;
  const MemoryBound many = memory_of(job, cut(1, 1), c, 64);
  EXPECT_EQ(item(many, "new weights"), 2 * 2 * 128256.0 * 4096);
  EXPECT_EQ(item(memory_of(job, cut(4, 1), c, 64), "new weights"), 2 * 2 * 128256.0 * 4096 / 4);
  EXPECT_EQ(&many.largest_phase(), &many.transient);
  EXPECT_EQ(many.transient_bytes(), many.working_bytes());
  job.load.rows = 8;
  job.load.prompt = job.load.completion = Lengths::fixed(8);
  const MemoryBound few = memory_of(job, cut(1, 1), c, 1);
  EXPECT_EQ(&few.largest_phase(), &few.passing);
  EXPECT_EQ(few.transient_bytes(), 2 * 2 * 128256.0 * 4096 + c.workspace_bytes);
  // New weights are not there while rows decode: the pool may have the room.
  Job still = job;
  still.passes = false;
  for (const Job& each : {job, still}) EXPECT_EQ(decoding_rows(each, cut(1, 1), c, 56e9), 1);
  Execution lora = cut(1, 1);
  lora.lora_rank = 8;
  EXPECT_EQ(item(memory_of(job, lora, c, 1), "new weights"), 2 * shape::adapter_parameters(job.model, 8));
}

// A layer of Llama-2-7B keeps of each token 9·4096 + 4·11008 values, which tensor ranks share out.
TEST(MemoryItems, ActivationsAreCutOverTensorRanks) {
  const Constants c = constants_of("");
  Job job = job_of("llama2-7b", Work::kGenerate, 8);
  job.load = {512, Lengths::fixed(256), Lengths::fixed(256), 1};
  const double values = 9 * 4096.0 + 4 * 11008.0;
  for (const int tp : {1, 4}) EXPECT_EQ(item(memory_of(job, cut(tp, 1), c), "prefill"), 8192 * 2 * values / tp);
  job.load.settings.micro_batch_tokens = 2048;
  job.work = Work::kScore;
  for (const int tp : {1, 4}) EXPECT_EQ(item(memory_of(job, cut(tp, 1), c), "activations"), 2048 * 2 * values / tp);
  job.work = Work::kTrain;
  for (const int tp : {1, 4})
    EXPECT_EQ(item(memory_of(job, cut(tp, 1), c), "activations"), 2048 * 2 * (32 * values + 6 * 4096) / tp);
  // Attended values and those behind an activation are made again, of one layer at a time.
  for (const int tp : {1, 4}) {
    Execution selective = cut(tp, 1);
    selective.selective = true;
    const double made_again = 4096 + 11008;
    EXPECT_EQ(item(memory_of(job, selective, c), "activations"),
              2048 * 2 * (32 * values - 31 * made_again + 6 * 4096) / tp);
  }
}

// An optimizer in a file comes by segment: two moments of the largest one are there, and no more. A GPU's is updated on
// its host.
TEST(MemoryItems, AnOptimizerOffTheDeviceComesByItsLargestSegment) {
  const Constants c = constants_of("");
  Execution away = cut(1, 1);
  away.layout.offload = true;
  const Job cpu = job_of("llama2-7b", Work::kTrain, 1, "cpu"), gpu = job_of("llama2-7b", Work::kTrain, 1);
  const MemoryBound bound = memory_of(cpu, away, c);
  EXPECT_EQ(item(bound, "optimizer"), -1);
  const double table = 32000.0 * 4096;  // smaller than a block: four matrices of attention and three of an MLP
  EXPECT_GE(item(bound, "optimizer on its way"), 8 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008));
  EXPECT_LE(item(bound, "optimizer on its way"), 8 * 2 * (table + 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008));
  EXPECT_EQ(item(memory_of(gpu, away, c), "optimizer on its way"), -1);
}

// A CPU has no graph pools: its kernels' buffers are small, unless the user says how large all are.
TEST(MemoryItems, WorkspaceIsOfTheClassOfDevice) {
  Constants c = constants_of("");
  const auto workspace = [&](const char* device) {
    return item(memory_of(job_of("qwen2.5-0.5b", Work::kScore, 1, device), cut(1, 1), c), "workspace");
  };
  EXPECT_EQ(workspace("A100-80"), 2e9);
  EXPECT_EQ(workspace("cpu"), 16.0 * 1024 * 1024);
  Job passes = job_of("qwen2.5-0.5b", Work::kGenerate, 1, "cpu");
  passes.passes = true;
  EXPECT_EQ(memory_of(passes, cut(1, 1), c).passing.back().bytes, 16.0 * 1024 * 1024);
  set_constant(c, "workspace_bytes=1e9");
  for (const char* device : {"A100-80", "cpu"}) EXPECT_EQ(workspace(device), 1e9);
  set_constant(c, "cpu_workspace_bytes=3e7");
  EXPECT_EQ(workspace("A100-80"), 1e9);
  EXPECT_EQ(workspace("cpu"), 3e7);
}

// A recipe's modules have micro-batches of so many tokens and one pool for every replica, however few its rows are.
TEST(MemoryItems, SettingsAreThoseOfWhatRuns) {
  const Constants c = constants_of("");
  Job job = job_of("llama2-7b", Work::kTrain, 8);
  job.load = {512, Lengths::fixed(256), Lengths::fixed(256), 1};
  EXPECT_EQ(micro_batch_rows(job, cut(1, 1)), 16);
  job.load.settings.micro_batch_tokens = 2048;
  EXPECT_EQ(micro_batch_rows(job, cut(1, 1)), 4);
  job.work = Work::kGenerate;
  job.load.settings.batch_rows = 32;
  EXPECT_EQ(decoding_rows(job, cut(1, 1), c, 0), 32);
  job.load.settings.pool_tokens = 10 * 512;
  EXPECT_EQ(decoding_rows(job, cut(1, 1), c, 0), 10);
  for (const double concurrent : {0.0, 1.0, 64.0})
    EXPECT_EQ(item(memory_of(job, cut(1, 1), c, concurrent), "keys and values"), 5120 * cached_bytes(job, cut(1, 1)));
  const double values = 2 * 32 * 32 * 128;  // of a token
  EXPECT_EQ(cached_bytes(job, cut(1, 1)), 2 * values);
  job.load.settings.cached_value_bytes = 4;
  EXPECT_EQ(cached_bytes(job, cut(1, 1)), 4 * values);
}

}  // namespace
}  // namespace collimate::plan

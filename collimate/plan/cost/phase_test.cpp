// Phases pay for more than arithmetic: exchanges of tp, ep and pp, and collectives of gradients.
#include "collimate/plan/cost/phase.h"

#include <gtest/gtest.h>

#include "collimate/plan/cost/collective.h"
#include "tests/support/plan/cost/sample_job.h"

namespace collimate::plan {
namespace {

using namespace testing_support;  // NOLINT: test only

PhaseTime time_of(const Job& job, int tp, int pp, int ep, const Constants& c) {
  Execution how;
  how.layout.tp = tp;
  how.layout.pp = pp;
  how.layout.ep = ep;
  return phase_time(job, how, c);
}

// With tp 8 as with dp 8 a device does an eighth of the arithmetic; with tp it exchanges besides.
TEST(Phase, PrefillPaysForWhatLayersExchange) {
  const Job job = job_of("llama2-13b", Work::kGenerate, 8);
  const Constants c = constants_of("");
  const double alone = time_of(job, 1, 1, 1, c).prefill;
  EXPECT_GT(time_of(job, 8, 1, 1, c).prefill, 1.05 * alone);
  EXPECT_GT(time_of(job, 1, 4, 1, c).prefill, alone * (1 + 1e-6));
  Constants serial = c;
  serial.serial_pipeline = 1;
  EXPECT_GT(time_of(job, 1, 4, 1, serial).prefill, 3.9 * time_of(job, 1, 4, 1, c).prefill);
  const Job experts = job_of("qwen3-30b-a3b", Work::kGenerate, 8);
  EXPECT_GT(time_of(experts, 1, 1, 8, c).prefill, 1.05 * time_of(experts, 1, 1, 1, c).prefill);
}

TEST(Phase, DecodingPaysForRoutingAndStages) {
  const Constants c = constants_of("");
  Job experts = job_of("qwen3-30b-a3b", Work::kGenerate, 8);
  experts.load.rows = 64;
  EXPECT_EQ(time_of(experts, 1, 1, 1, c).tensor, 0);
  // Each of 1024 tokens passes two all-to-alls in each of 48 layers: the 8 rows of a device, 8 experts for each, in
  // bf16.
  const double routed = 2.0 * 8 * 8 * static_cast<double>(experts.model.hidden);
  const double exchange = collective_seconds(Collective::kAllToAll, routed, rank_set(8, 1, 8), experts.gpu, c);
  const double exchanges = time_of(experts, 1, 1, 8, c).tensor;
  EXPECT_NEAR(exchanges, 1024 * 48 * 2 * exchange, 1e-9 * exchanges);
  // A token passes three borders, each with a send of a fourth of its replica's 32 rows.
  Job dense = job_of("llama2-13b", Work::kGenerate, 8);
  dense.load.rows = 64;
  EXPECT_EQ(time_of(dense, 1, 1, 1, c).tensor, 0);
  const double sends = time_of(dense, 1, 4, 1, c).tensor;
  EXPECT_NEAR(sends, 1024 * 3 * send_seconds(2.0 * 8 * 5120, true, dense.gpu, c), 1e-9 * sends);
}

// A token reads its own experts; the second of two reads those that the first did not draw.
TEST(Phase, DecodingReadsTheExpertsThatItsTokensDraw) {
  const Constants c = constants_of("");
  const auto memory = [&](double rows) {
    Job job = job_of("qwen3-30b-a3b", Work::kGenerate, 1);
    job.load.rows = rows;
    return time_of(job, 1, 1, 1, c).memory;
  };
  const Job job = job_of("qwen3-30b-a3b", Work::kGenerate, 1);
  const double total = shape::total_parameters(job.model), active = shape::active_parameters(job.model);
  const double drawn = static_cast<double>(job.model.experts.per_token) / static_cast<double>(job.model.experts.count);
  const double of_two = total - (total - active) * (1 - drawn);
  const double bandwidth = job.gpu.memory_bytes_per_second * c.memory_efficiency;
  // Keys and values double with the rows.
  const double expected = 1024 * 2 * (of_two - 2 * active) / bandwidth;
  EXPECT_NEAR(memory(2) - 2 * memory(1), expected, 1e-3 * std::abs(expected));
}

// The share of the seven others crosses a rank's links.
TEST(Collectives, AnAllToAllMovesWhatIsNotTheRanksOwn) {
  const Constants c = constants_of("");
  const DeviceKind gpu = job_of("llama2-7b", Work::kScore, 8).gpu;
  const auto seconds = [&](double bytes) {
    return collective_seconds(Collective::kAllToAll, bytes, rank_set(8, 1, 8), gpu, c);
  };
  const double efficiency = c.nccl[Constants::nccl_index(Algorithm::kRing, Protocol::kSimple)].efficiency;
  const double expected = 8e9 / 8 * 7 / (gpu.link_bytes_per_second * c.link_efficiency) / efficiency;
  EXPECT_NEAR(seconds(16e9) - seconds(8e9), expected, 1e-9 * expected);
}

// A layer of routed experts costs a decoded token its launches; a dense one, and the leading dense layers, nothing.
TEST(Phase, RoutedLayersDecodeWithTheirOwnLatency) {
  Constants c = constants_of("");
  const auto latency = [&](const char* model, double seconds) {
    Job job = job_of(model, Work::kGenerate, 8);
    job.load.rows = 1;
    c.decode_expert_seconds = seconds;
    return time_of(job, 8, 1, 1, c).latency;
  };
  for (const auto& [model, routed] : {std::pair("qwen3-30b-a3b", 48), {"deepseek-v3", 58}, {"llama2-13b", 0}})
    EXPECT_NEAR(latency(model, 1e-3) - latency(model, 0), 1024 * routed * 1e-3, 1e-6) << model;
}

// New weights go to other devices tensor by tensor: the more tensors, the longer for the same bytes.
TEST(Phase, TransfersCostTheirTensors) {
  EXPECT_EQ(weight_tensors(shape::find_outline("llama2-7b")), 32 * 9 + 2);
  EXPECT_EQ(weight_tensors(shape::find_outline("qwen3-30b-a3b")), 48 * (6 + 128 * 3 + 1) + 2);
  const Job job = job_of("qwen3-30b-a3b", Work::kTrain, 8);
  Constants c = constants_of("");
  const double packed = transfer_seconds(job, {}, job, {}, false, c);
  c.tensor_seconds = 1e-3;
  EXPECT_NEAR(transfer_seconds(job, {}, job, {}, false, c) - packed, 1e-3 * weight_tensors(job.model), 1e-9);
  EXPECT_EQ(transfer_seconds(job, {}, job, {}, true, c), 0);
}

// Attention and activations that are made again cost attention's own products: no product with weights is repeated.
TEST(Phase, AttentionThatIsMadeAgainTakesItsProductsOnceMore) {
  const Constants c = constants_of("");
  Job job = job_of("llama2-7b", Work::kTrain, 8);
  job.load = {512, Lengths::fixed(1024), Lengths::fixed(3072), 1};
  const Execution none = cut(2, 2);
  Execution selective = none, full = none;
  selective.selective = true;
  full.layout.recompute = true;
  const Moments tokens = job.load.row_tokens();
  const double part =
      1 - forward_flops(job.model, Moments{tokens.mean, 0}, true) / forward_flops(job.model, tokens, true);
  EXPECT_GT(part, 0.05);
  const PhaseTime kept = phase_time(job, none, c), again = phase_time(job, selective, c);
  EXPECT_NEAR(again.compute, (3 + part) / 3 * kept.compute, 1e-9 * kept.compute);
  EXPECT_EQ(again.tensor, kept.tensor);
  EXPECT_GT(again.bubble, kept.bubble);
  const double all_again = phase_time(job, full, c).total();
  EXPECT_LT(again.total(), all_again);
  full.selective = true;
  EXPECT_EQ(phase_time(job, full, c).total(), all_again);
}

// Four rows of 10, 500, 500 and 10 tokens behind prompts of 100, three at once: when both short ones have ended, the
// long ones fill the pool of three mean rows, 1065 tokens, and the later one goes back with half of them.
TEST(Phase, PreemptedRowsArePrefilledAgain) {
  const Constants c = constants_of("");
  Job job = job_of("llama2-7b", Work::kGenerate, 1);
  job.load.rows = 4;
  job.load.prompt = Lengths::fixed(100);
  job.load.completion = Lengths::histogram({{10, 1}, {500, 1}});
  Execution how;
  const auto prefill = [&](double tokens) {
    return forward_flops(job.model, tokens, false) / (job.gpu.flops * c.score_efficiency);
  };
  const double all_at_once = generate_time(job, how, c, 0).prefill;
  EXPECT_NEAR(all_at_once, 4 * prefill(100), 1e-9 * all_at_once);
  how.decoding_rows = 3;
  const double again = generate_time(job, how, c, 0).prefill;
  EXPECT_NEAR(again, 4 * prefill(100) + prefill(1065.0 / 2), 1e-6 * again);
}

// Experts that no other device holds need no exchange of gradients; of 16 devices two hold the same, on two nodes.
TEST(Phase, GradientsGoToThoseThatHoldTheSame) {
  const Constants c = constants_of("");
  for (const int devices : {8, 16}) {
    const Job job = job_of("qwen3-30b-a3b", Work::kTrain, devices);
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

// Eight lanes, each as fast as the slower end; then the links of the eight that generate with tp 4.
TEST(Phase, NewWeightsGoAtTheSpeedOfTheSlowerEnd) {
  const Constants c = constants_of("");
  const Job slow = job_of("llama2-7b", Work::kTrain, 8);
  Job fast = slow;
  fast.gpu = DeviceKinds().find("H100-80");
  Execution from, to;
  to.layout.tp = 4;
  const double bytes = 2 * shape::total_parameters(slow.model), lanes = 8 * 25e9 * c.network_efficiency;
  const double to_slow = transfer_seconds(fast, from, slow, to, false, c);
  EXPECT_NEAR(to_slow, bytes / lanes + bytes / (4 * 300e9 * c.link_efficiency), 1e-9 * to_slow);
  const double to_fast = transfer_seconds(slow, from, fast, to, false, c);
  EXPECT_NEAR(to_fast, bytes / lanes + bytes / (4 * 450e9 * c.link_efficiency), 1e-9 * to_fast);
}

// ZeRO-3 gathers likewise: experts that ep has cut to one holder are at home.
TEST(Phase, ShardsAreGatheredFromThoseThatHoldThem) {
  const Constants c = constants_of("");
  const Job job = job_of("qwen3-30b-a3b", Work::kScore, 8);
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

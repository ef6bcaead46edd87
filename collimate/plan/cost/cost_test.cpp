#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/plan/cost/collective.h"
#include "collimate/plan/layout/candidates.h"
#include "tests/support/base/error_of.h"
#include "tests/support/plan/cost/sample_job.h"

namespace collimate::plan {
namespace {

using namespace testing_support;  // NOLINT: test only

// 24bsh² + 4bs²h of a layer with plain attention and MLP, half the scores for a causal kernel, and 2bsVh.
TEST(Flops, AreThoseOfTheFormulaForADenseModel) {
  const shape::Outline model = shape::find_outline("gpt3-175b");
  const double h = 12288, s = 2048, v = 50257;
  EXPECT_NEAR(forward_flops(model, s, true), 96 * (24 * s * h * h + 2 * s * s * h) + 2 * s * v * h, 1e-9 * 1e18);
}

// Attention is quadratic: 2·L·n·d FLOPs more for every unit of the lengths' variance, whatever else is equal.
TEST(Flops, SpreadLengthsCostMoreAttention) {
  Job even = job_of("llama2-7b", Work::kScore, 8);
  even.load.prompt = Lengths::fixed(24);
  even.load.completion = Lengths::fixed(1000);
  Job spread = even;
  spread.load.completion = Lengths::histogram({{100, 1}, {1900, 1}});
  const double less = forward_flops(even.model, even.load.row_tokens(), true);
  const double more = forward_flops(spread.model, spread.load.row_tokens(), true);
  EXPECT_DOUBLE_EQ(less, forward_flops(even.model, 1024, true));
  EXPECT_NEAR(more - less, 2.0 * 32 * 32 * 128 * 900 * 900, 1e-6 * (more - less));
  const Constants c = constants_of("");
  for (const Work work : {Work::kScore, Work::kTrain}) {
    even.work = spread.work = work;
    EXPECT_NEAR(phase_time(spread, cut(1, 1), c).compute / phase_time(even, cut(1, 1), c).compute, more / less, 1e-9);
  }
  even.work = spread.work = Work::kGenerate;
  even.load.completion = spread.load.completion = Lengths::fixed(24);
  even.load.prompt = Lengths::fixed(1000);
  spread.load.prompt = Lengths::histogram({{100, 1}, {1900, 1}});
  EXPECT_GT(phase_time(spread, cut(1, 1), c).prefill, 1.01 * phase_time(even, cut(1, 1), c).prefill);
}

// Half of eight lengths are complete with the fourth shortest, then six, seven and all.
TEST(Decode, SaysWhenRowsAreComplete) {
  const auto round = [](double, double) { return 1.0; };
  EXPECT_EQ(decode({80, 10, 70, 20, 60, 30, 50, 40}, 8, {8}, 0, round).finish, (Finish{40, 60, 70, 80}));
  EXPECT_EQ(decode({100}, 64, {64}, 10, round).finish, at_the_end(100));
  EXPECT_EQ(decode({100, 100}, 64, {32}, 10, round).finish, (Finish{100, 200, 200, 200}));
}

TEST(Flops, ExpertsCountWhereTheyWork) {
  const shape::Outline model = shape::find_outline("qwen3-30b-a3b");
  EXPECT_LT(forward_flops(model, 1, false), 2 * 3.5e9);
}

TEST(Memory, ZeroCutsItsShare) {
  const Job job = job_of("llama2-7b", Work::kTrain, 8);
  const Constants c = constants_of("");
  const double elements = shape::total_parameters(job.model);
  const MemoryBound plain = memory_of(job, cut(1, 1, 0), c), one = memory_of(job, cut(1, 1, 1), c);
  const MemoryBound two = memory_of(job, cut(1, 1, 2), c), three = memory_of(job, cut(1, 1, 3), c);
  EXPECT_DOUBLE_EQ(item(plain, "optimizer"), 12 * elements);
  EXPECT_DOUBLE_EQ(item(one, "optimizer"), 12 * elements / 8);
  EXPECT_DOUBLE_EQ(item(one, "gradients"), 4 * elements);
  EXPECT_DOUBLE_EQ(item(two, "gradients"), 4 * elements / 8);
  EXPECT_DOUBLE_EQ(item(two, "weights"), 2 * elements);
  EXPECT_DOUBLE_EQ(item(three, "weights"), 2 * elements / 8);
}

// Experts that ep has cut are not cut again: all devices together hold each at least once.
TEST(Memory, ZeroSpreadsExpertsOverThoseThatHoldTheSame) {
  const Job job = job_of("qwen3-30b-a3b", Work::kTrain, 4);
  const Constants c = constants_of("");
  const double elements = shape::total_parameters(job.model);
  for (const int ep : {1, 2, 4}) {
    Execution how = cut(1, 1, 3);
    how.layout.ep = ep;
    const MemoryBound bound = memory_of(job, how, c);
    EXPECT_NEAR(4 * item(bound, "weights"), 2 * elements, 1e-6 * elements) << ep;
    EXPECT_NEAR(4 * item(bound, "gradients"), 4 * elements, 1e-6 * elements) << ep;
    EXPECT_NEAR(4 * item(bound, "optimizer"), 12 * elements, 1e-6 * elements) << ep;
  }
}

// 70 billion weights in bf16 are 138 GB: one device cannot hold them, four can.
TEST(Memory, AMisfitNamesItsItem) {
  const Job job = job_of("llama2-70b", Work::kScore, 8);
  const Constants c = constants_of("");
  EXPECT_THAT(misfit(memory_of(job, cut(1, 1), c), 0, job.gpu, c), testing::EndsWith("of which weights 138.0 GB"));
  EXPECT_EQ(misfit(memory_of(job, cut(4, 1), c), 0, job.gpu, c), "");
  EXPECT_THAT(misfit(memory_of(job, cut(4, 1), c), 60e9, job.gpu, c), testing::HasSubstr("other models"));
}

TEST(Memory, KeysAndValuesFollowTheHeads) {
  const Job grouped = job_of("llama2-70b", Work::kGenerate, 8);
  EXPECT_EQ(cached_bytes(grouped, cut(1, 1)), 2.0 * 2 * 80 * 8 * 128);
  EXPECT_EQ(cached_bytes(grouped, cut(8, 1)), 2.0 * 2 * 80 * 128);
  EXPECT_EQ(cached_bytes(grouped, cut(16, 1)), cached_bytes(grouped, cut(8, 1)));
  const Job latent = job_of("deepseek-v3", Work::kGenerate, 8);
  EXPECT_EQ(cached_bytes(latent, cut(8, 1)), 2.0 * 576 * 61);
}

// DeepSeek-V3's queries, keys, values and what attention makes of them are 164 kB of a token and layer, with the
// compressed ones 168, its norms and residuals 72, its experts 147 of inner values and 229 of what goes to them and
// back.
TEST(Memory, LatentAttentionIsWiderThanItsLayer) {
  Job job = job_of("deepseek-v3", Work::kScore, 8);
  job.load.prompt = job.load.completion = Lengths::fixed(500);
  Execution how = cut(1, 1);
  how.layout.micro_batch = 1;
  const double attention = 2 * (128 * 2 * (192 + 128) + 1536 + 512 + 64), inner = 8 * (8 * 2048 + 2048);
  const double bytes = item(memory_of(job, how, constants_of("")), "activations") / 1000;
  EXPECT_NEAR(bytes, 10 * 7168 + attention + inner + 2 * 2 * 8 * 7168, 1);
}

// A rank of 64 beside 70 billion frozen weights: gradients and optimizer of a percent of them.
TEST(Memory, LoraTrainsLittle) {
  const Job job = job_of("llama2-70b", Work::kTrain, 8);
  Execution whole = cut(8, 1, 1), lora = whole;
  lora.lora_rank = 64;
  const Constants c = constants_of("");
  EXPECT_EQ(item(memory_of(job, lora, c), "weights"), item(memory_of(job, whole, c), "weights"));
  for (const char* what : {"gradients", "optimizer"})
    EXPECT_LT(item(memory_of(job, lora, c), what), 0.02 * item(memory_of(job, whole, c), what)) << what;
  EXPECT_LT(transfer_seconds(job, lora, job, cut(8, 1), false, c),
            0.02 * transfer_seconds(job, whole, job, cut(8, 1), false, c));
}

// ZeRO 2 keeps a share of the gradients and exchanges them for every micro-batch.
TEST(Layout, Zero2IsLeanerAndSlowerThanZero1) {
  Job job = job_of("llama2-7b", Work::kTrain, 8);
  job.load = {512, Lengths::fixed(512), Lengths::fixed(512), 1};
  const Constants c = constants_of("");
  const MemoryBound one = memory_of(job, cut(1, 1, 1), c), two = memory_of(job, cut(1, 1, 2), c);
  EXPECT_NEAR(item(two, "gradients"), item(one, "gradients") / 8, 1);
  EXPECT_EQ(item(two, "optimizer"), item(one, "optimizer"));
  EXPECT_GT(phase_time(job, cut(1, 1, 2), c).data, phase_time(job, cut(1, 1, 1), c).data);
  SearchSpace space;
  space.zero = 2;
  EXPECT_FALSE(enumerate_candidates(job, space, c).empty());
}

// Rows of 64k tokens: their activations are shared out, keys and values go around.
TEST(Layout, LongRowsAreCut) {
  Job job = job_of("llama3.1-8b", Work::kTrain, 8, "H100-80");
  job.load = {64, Lengths::fixed(1024), Lengths::fixed(64512), 1};
  const Constants c = constants_of("");
  Execution four = cut(2, 1, 1), one = four;
  four.layout.cp = 4;
  four.layout.micro_batch = one.layout.micro_batch = 1;
  EXPECT_NEAR(item(memory_of(job, four, c), "activations"), item(memory_of(job, one, c), "activations") / 4, 1);
  const double tokens = 65536.0 / 4;
  const double ring = phase_time(job, four, c).tensor;
  Constants slow = c;
  slow.overlap = 1;  // nothing of the ring is seen
  const double bytes = tokens * 2 * 2 * 8 * 128 / 2;
  const double hidden = phase_time(job, four, slow).tensor;
  EXPECT_NEAR(ring - hidden, 32.0 * 2 * 64 * 0.5 * 3 * send_seconds(bytes, true, job.gpu, c), 1e-6 * ring);
  const auto uses_cp = [&](const Job& asked) {
    const std::vector<Candidate> found = enumerate_candidates(asked, {}, c);
    return std::any_of(found.begin(), found.end(), [](const Candidate& each) { return each.how.layout.cp > 1; });
  };
  EXPECT_TRUE(uses_cp(job));
  job.load.completion = Lengths::fixed(1024);
  EXPECT_FALSE(uses_cp(job));
}

// Tokens are exchanged for heads by two all-to-alls, of queries, keys and values and of what attention gives.
TEST(Layout, ContextRanksMayExchangeHeads) {
  Job job = job_of("llama3.1-8b", Work::kTrain, 8, "H100-80");
  job.load = {64, Lengths::fixed(1024), Lengths::fixed(64512), 1};
  Constants c = constants_of("");
  c.overlap = 1;  // nothing of gathering is seen
  Execution gather = cut(2, 1, 1);
  gather.layout.cp = 4;
  gather.layout.micro_batch = 1;
  Execution heads = gather;
  heads.layout.cp_kind = shape::ContextKind::kUlysses;
  const double own = 65536.0 / 4, values = (4 + 1) * 2 * 128;  // four heads and the keys and values of one
  EXPECT_EQ(attended_values(job.model, heads.layout), values);
  EXPECT_EQ(attended_values(job.model, gather.layout), 4 * 2 * 128);
  const double seconds =
      2 * collective_seconds(Collective::kAllToAll, own * 2 * 4 * values / 2, rank_set(4, 2, 8), job.gpu, c);
  EXPECT_NEAR(phase_time(job, heads, c).tensor - phase_time(job, gather, c).tensor, 32.0 * 2 * 64 * seconds, 1e-3);
  EXPECT_EQ(item(memory_of(job, heads, c), "attention over cp"), 2 * 65536.0 * 2 * values);
  job.gpu = DeviceKinds().find("cpu");  // which gathers whole rows, of 4 bytes a value
  EXPECT_EQ(item(memory_of(job, gather, c), "attention over cp"), 2 * 65536.0 * 4 * 4 * 2 * 128);
}

// Where every query head has keys of its own, eight parts of a row move less by heads; where four share them, more.
TEST(Layout, TheCheaperExchangeIsChosen) {
  const Constants c = constants_of("");
  const auto fastest_of = [&](const char* model) {
    Job job = job_of(model, Work::kScore, 8, "H100-80");
    job.load = {8, Lengths::fixed(1024), Lengths::fixed(64512), 1};
    SearchSpace space;
    space.tp = space.pp = 1;
    for (const Candidate& each : enumerate_candidates(job, space, c))
      if (each.how.layout.cp == 8) return each.how.layout.cp_kind;
    ADD_FAILURE() << model;
    return shape::ContextKind::kGather;
  };
  EXPECT_EQ(fastest_of("llama2-7b"), shape::ContextKind::kUlysses);
  for (const char* model : {"llama3.1-8b", "qwen2.5-7b"})  // half of a ring is hidden; 28 heads are not for eight
    EXPECT_EQ(fastest_of(model), shape::ContextKind::kGather);
  Job job = job_of("llama2-7b", Work::kScore, 8, "H100-80");
  job.load = {8, Lengths::fixed(1024), Lengths::fixed(64512), 1};
  SearchSpace given;
  given.tp = given.pp = 1, given.cp = 8;  // as a published run says it, which gathers
  for (const Candidate& each : enumerate_candidates(job, given, c))
    EXPECT_EQ(each.how.layout.cp_kind, shape::ContextKind::kGather);
}

// A step of prefill and the logits of a round are a generator's too.
TEST(Memory, OfAGeneratorHasPrefillAndLogits) {
  Job job = job_of("llama2-7b", Work::kGenerate, 8);
  job.load.rows = 64;
  job.load.prompt = Lengths::fixed(512);
  const MemoryBound bound = memory_of(job, cut(1, 1), constants_of(""), 8);
  EXPECT_EQ(item(bound, "logits"), 8 * 32000 * 6.0);
  EXPECT_EQ(item(bound, "prefill"), 4096 * (18.0 * 4096 + 8 * 11008));
  job.load.rows = 1024;
  EXPECT_EQ(item(memory_of(job, cut(1, 1), constants_of(""), 8), "prefill"), 8192 * (18.0 * 4096 + 8 * 11008));
}

// A CPU holds fp32 values and panels.
TEST(Memory, OfACpuHasWiderWeights) {
  const Constants c = constants_of("");
  const double wide = item(memory_of(job_of("opt-125m", Work::kScore, 1, "cpu"), cut(1, 1), c), "weights");
  EXPECT_EQ(wide, 6 * item(memory_of(job_of("opt-125m", Work::kScore, 1), cut(1, 1), c), "weights"));
}

// A pool is of one size, whatever the lengths that come: made for rows of mean length, but never smaller than the
// longest row.
TEST(Memory, ThePoolHoldsTheLongestRow) {
  Job job = job_of("llama2-7b", Work::kGenerate, 1);
  job.load.prompt = Lengths::fixed(512);
  job.load.completion = Lengths::histogram({{100, 99}, {32256, 1}});
  const Constants c = constants_of("");
  const double token = cached_bytes(job, cut(1, 1)), mean = 512 + 0.99 * 100 + 0.01 * 32256;
  EXPECT_EQ(item(memory_of(job, cut(1, 1), c), "keys and values"), 0);
  EXPECT_EQ(item(memory_of(job, cut(1, 1), c, 1), "keys and values"), 32768 * token);
  EXPECT_EQ(item(memory_of(job, cut(1, 1), c, 30), "keys and values"), 32768 * token);
  EXPECT_NEAR(item(memory_of(job, cut(1, 1), c, 100), "keys and values"), 100 * mean * token,
              1e-9 * 100 * mean * token);
}

// Rows of mean length would fit by the dozen.
TEST(Memory, ALongestRowThatDoesNotFitIsNamed) {
  Job job = job_of("llama2-7b", Work::kGenerate, 1);
  job.load.prompt = Lengths::fixed(512);
  job.load.completion = Lengths::histogram({{100, 999}, {262144 - 512, 1}});
  EXPECT_GT(concurrency(job, cut(1, 1), 10e9), 20);
  std::string why;
  EXPECT_FALSE(fastest(job, {}, constants_of(""), &why));
  EXPECT_THAT(why, testing::EndsWith("of which keys and values 137.4 GB"));
}

TEST(Collective, SmallMessagesCostLatencyLargeOnesBandwidth) {
  const Constants c = constants_of("");
  const DeviceKind gpu = DeviceKinds().find("A100-80");
  const RankSet eight = rank_set(8, 1, 8);
  EXPECT_NEAR(collective_seconds(Collective::kAllReduce, 1024, eight, gpu, c), 6.6e-6 + 14 * 0.6e-6, 2e-6);
  EXPECT_NEAR(collective_seconds(Collective::kAllReduce, 8e9, eight, gpu, c), 1.75 * 8e9 / (300e9 * 0.8), 1e-3);
  EXPECT_EQ(collective_seconds(Collective::kAllReduce, 8e9, rank_set(1, 1, 8), gpu, c), 0);
  const RankSet sixteen = rank_set(16, 1, 8), strided = rank_set(2, 8, 8);
  EXPECT_EQ(sixteen.nodes(), 2);
  EXPECT_EQ(strided.nodes(), 2);
  EXPECT_EQ(strided.in_node, 1);
}

TEST(Decode, EqualLengthsAreOneWaveEach) {
  const auto round = [](double, double) { return 1.0; };
  EXPECT_DOUBLE_EQ(decode({100}, 64, {64}, 10, round).seconds, 100);
  EXPECT_DOUBLE_EQ(decode({100, 100}, 64, {32}, 10, round).seconds, 200);
}

TEST(Decode, ARowThatEndsMakesRoomForTheNext) {
  const auto round = [](double, double) { return 1.0; };
  EXPECT_DOUBLE_EQ(decode({10, 30, 20}, 3, {2}, 0, round).seconds, 30);
  EXPECT_DOUBLE_EQ(decode({10, 30, 20}, 3, {3}, 0, round).seconds, 30);
  EXPECT_DOUBLE_EQ(decode({10, 30, 20}, 3, {1}, 0, round).seconds, 60);
}

// The mean context of a row from prompt p to p + n is p + n/2; rounds by alive rows add up to the tokens.
TEST(Decode, ContextsAndRowsAddUp) {
  const auto product = [](double alive, double context) { return alive * context; };
  EXPECT_DOUBLE_EQ(decode({40}, 8, {8}, 100, product).seconds, 8 * 40 * (100 + 20));
  EXPECT_DOUBLE_EQ(decode({10, 30}, 2, {2}, 0, product).seconds, 10 * 5 + 30 * 15);
  // The third row begins at 10 and ends at 20; then the second is alone.
  EXPECT_DOUBLE_EQ(decode({10, 30, 10}, 3, {2}, 0, product).seconds, 10 * 2 * 5 + 10 * (15 + 5) + 10 * 25);
  const auto rows = [](double alive, double) { return alive; };
  EXPECT_DOUBLE_EQ(decode({10, 30, 20, 7}, 8, {4}, 0, rows).seconds, 2 * (10 + 30 + 20 + 7));
}

// Rows of 10, 60 and 25 tokens, and one of 50 that begins when the first ends; a pool of 70. When the third ends, 25
// and 15 tokens are left, which fill it at 40 and 30: the later one goes back, and does its last twenty alone.
TEST(Decode, AFullPoolPreemptsTheLatest) {
  std::vector<double> contexts;
  const auto round = [&](double, double context) {
    contexts.push_back(context);
    return 1.0;
  };
  EXPECT_DOUBLE_EQ(decode({10, 60, 25, 50}, 4, {3}, 0, round).rounds, 60);
  contexts.clear();
  const Decoding full = decode({10, 60, 25, 50}, 4, {3, 70}, 0, round);
  EXPECT_NEAR(full.rounds, 80, 1e-6);
  EXPECT_EQ(full.preempted_rows, 1);
  EXPECT_NEAR(full.recomputed_tokens, 30, 1e-6);
  EXPECT_THAT(contexts, testing::Pointwise(testing::DoubleNear(1e-6), {5.0, 42.5 / 3, 55.0 / 2, 50.0, 40.0}));
  // The second does not begin where it would not fit beside the first at that one's end.
  const Decoding waiting = decode({20, 30}, 2, {2, 30}, 0, round);
  EXPECT_NEAR(waiting.rounds, 50, 1e-6);
  EXPECT_EQ(waiting.preempted_rows, 0);
  // Eight rows of one length, of which two fit at once.
  EXPECT_NEAR(decode({100}, 8, {8, 200}, 0, round).rounds, 400, 1e-6);
}

// Contexts never pass the pool, and no token is lost or drawn twice.
TEST(Decode, APoolIsABoundWhateverTheLengths) {
  const std::vector<double> sorted = Lengths::log_normal(500, 1.2, 16384).sample(128);
  std::vector<double> lengths;
  double tokens = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    lengths.push_back(sorted[i * 79 % sorted.size()]);
    tokens += 2 * sorted[i];
  }
  constexpr double kPool = 24000;
  double most = 0;
  const Decoding decoded = decode(lengths, 256, {16, kPool}, 512, [&](double alive, double context) {
    most = std::max(most, alive * context);
    return alive;
  });
  EXPECT_NEAR(decoded.seconds, tokens, 1e-9 * tokens);
  EXPECT_LE(most, kPool * (1 + 1e-6));
  EXPECT_GT(decoded.preempted_rows, 0);
  EXPECT_GT(decoded.rounds, 1.2 * decode(lengths, 256, {16}, 512, [](double, double) { return 0.0; }).rounds);
}

TEST(Candidates, AllFitTheFastestFirst) {
  const Job job = job_of("llama2-13b", Work::kTrain, 16);
  const Constants c = constants_of("");
  double last = 0;
  const std::vector<Candidate> all = enumerate_candidates(job, {}, c);
  ASSERT_FALSE(all.empty());
  for (const Candidate& candidate : all) {
    EXPECT_EQ(misfit(memory_of(job, candidate.how, c), 0, job.gpu, c), "");
    EXPECT_GE(candidate.seconds, last);
    last = candidate.seconds;
  }
}

// A config's linear layers add up in so many pieces, and other tp than those that divide them in another order.
TEST(Candidates, TensorRanksDivideThePiecesOfSums) {
  const auto sizes = [](int sum_chunks) {
    SearchSpace space;
    space.sum_chunks = sum_chunks;
    std::set<int> found;
    for (const Candidate& each : enumerate_candidates(job_of("qwen2.5-0.5b", Work::kScore, 8), space, constants_of("")))
      found.insert(each.how.layout.tp);
    return found;
  };
  EXPECT_EQ(sizes(1), std::set<int>{1});
  EXPECT_EQ(sizes(2), (std::set<int>{1, 2}));
  EXPECT_GT(sizes(0).size(), 1U);
}

TEST(Candidates, NothingFitsWithAReason) {
  std::string why;
  EXPECT_FALSE(fastest(job_of("llama3.1-405b", Work::kScore, 8, "A100-40"), {}, constants_of(""), &why));
  EXPECT_THAT(why, testing::HasSubstr("of which weights"));
}

TEST(Candidates, AContradictoryLayoutIsNamed) {
  SearchSpace space;
  space.tp = 3;
  EXPECT_THROW(enumerate_candidates(job_of("llama2-7b", Work::kScore, 8), space, constants_of("")), base::InputError);
}

TEST(Constants, EveryOneIsInTheTableAndCanBeSet) {
  for (const ConstantInfo& info : constant_table()) {
    EXPECT_FALSE(info.source.empty()) << info.name;
    EXPECT_LE(info.low, info.value) << info.name;
    EXPECT_GE(info.high, info.value) << info.name;
    Constants c = constants_of("");
    set_constant(c, fmt::format("{}={}", info.name, info.high));
    EXPECT_EQ(c.*info.member, info.high);
  }
  Constants c = constants_of("");
  EXPECT_THAT(base::message_of([&] { set_constant(c, "train_eficiency=0.4"); }),
              testing::EndsWith("try 'train_efficiency'"));
  EXPECT_THROW(set_constant(c, "train_efficiency=700"), base::InputError);
  EXPECT_THROW(set_constant(c, "train_efficiency"), base::InputError);
  EXPECT_THROW(constants_of("vlm"), base::InputError);
}

}  // namespace
}  // namespace collimate::plan

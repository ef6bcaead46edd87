// Measures the costs of several ranks that work on one model:
//   bench_layouts [rounds] [chunks ranks collectives] [15m 260k 110m] [float32 bfloat16]
// chunks measures a layer whose sums are cut into 2, 4 and 8 pieces (reduction_chunks), relative to the uncut one.
// ranks measures an SFT update and a generation by 2 ranks of one thread each, over dp, tp or pp, beside one process of
// 2 threads; the ratio is one process's time divided by that of the ranks. Stages of pp take one of 8 rows at a time:
// without any other cost they would reach 8/9, as each waits for a ninth of the time.
// collectives measures an all-reduce between two ranks that are pinned to a core each, of 1 KiB 100,000 times a round,
// and of 4 MiB beside a copy of as many bytes. Numbers are medians of the rounds (least .. largest).
#include <pthread.h>

#include <cstring>
#include <thread>

#include "bench/models.h"
#include "bench/peaks.h"
#include "bench/rows.h"
#include "bench/words.h"
#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/comm/group.h"
#include "collimate/generate/engine.h"
#include "collimate/host/cpu.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/train/learner.h"

namespace collimate::bench {
namespace {

using tensor::ComputeType;
using tensor::Exec;

constexpr int kRanks = 2;
constexpr double kDeadline = 60;
constexpr int64_t kRows = 8, kTokens = 256, kPrompts = 16, kPromptTokens = 32, kNewTokens = 64;

void chunks_of_layer(const Exec& exec, const std::string& model, const LinearLayer& layer, ComputeType type,
                     int64_t rows, int rounds) {
  const auto w = noise(layer.n * layer.k), x = noise(rows * layer.k, 2);
  std::vector<float> y(static_cast<size_t>(rows * layer.n));
  std::vector<tensor::LinearPanels> panels(4);
  std::vector<Side> sides;
  for (int i = 0; i < 4; ++i) {
    pack_linear(exec, w.data(), layer.n, layer.k, type, 1 << i, base::at(panels, i));
    sides.push_back([&, i] {
      return std::vector{seconds_per_call(
          [&] { tensor::linear(exec, x.data(), layer.k, rows, base::at(panels, i), y.data(), layer.n); })};
    });
  }
  const auto spreads = take_turns(rounds, sides);
  const Spread& whole = spreads[0][0];
  fmt::print("{:44} {:>30} ms", fmt::format("{} {} {} M={}", model, layer.name, name_of(type), rows), in_ms(whole));
  for (int i = 1; i < 4; ++i)
    fmt::print("  {}: {:.3f}{}", 1 << i, base::at(spreads, i)[0].median / whole.median,
               tie(base::at(spreads, i)[0], whole) ? " tie" : "");
  fmt::print("\n");
  std::fflush(stdout);
}

// A Rank trains and generates, as one of kRanks ranks over a mesh axis, or alone if `axis` is "".
class Rank {
 public:
  Rank(const shape::ModelShape& shape, ComputeType compute, const std::string& axis, int threads,
       std::unique_ptr<comm::Group> group)
      : group_(std::move(group)), pool_(threads), rows_(sft_rows(0, kRows, kTokens, shape.vocabulary)) {
    model::WeightsOptions options{.trained = true, .compute = compute};
    if (axis == "tp") options.ranks.tensor = {{group_.get(), kDeadline}, {group_->rank(), kRanks}};
    if (axis == "pp") options.ranks.stages = {{group_.get(), kDeadline}, {group_->rank(), kRanks}};
    weights_ = std::make_shared<model::Weights>(shape, options, exec());
    weights_->initialize(1, 0.02F);
    model_ = std::make_unique<model::Model>(weights_, exec());
    const bool shares_rows = axis == "dp";
    if (shares_rows) rows_ = sft_rows(group_->rank() * kRows / kRanks, kRows / kRanks, kTokens, shape.vocabulary);
    learner_ = std::make_unique<train::Learner>(
        *model_,
        train::LearnerOptions{
            .schedule = {.peak = 1e-6}, .micro_batch_rows = axis == "pp" ? 1 : 0, .zero = shares_rows ? 1 : 0},
        exec(), train::TrainingRanks{shares_rows ? group_.get() : nullptr});
    const int64_t prompts = shares_rows ? kPrompts / kRanks : kPrompts;
    for (int64_t p = 0; p < prompts; ++p) {
      prompts_.emplace_back();
      for (int64_t t = 0; t < kPromptTokens; ++t)
        prompts_.back().push_back(token(static_cast<uint64_t>(p * 999 + t), shape.vocabulary));
    }
  }

  void update() { learner_->update(rows_, rlhf::objective_of(loss_)); }
  void generate() {
    generate::EngineOptions options;
    options.service.exec = exec();
    options.service.eos_ids = {2};
    generate_all(*model_, prompts_, {.max_tokens = kNewTokens, .ignore_eos = true}, options);
  }

 private:
  Exec exec() { return {&pool_}; }

  std::unique_ptr<comm::Group> group_;
  host::CorePool pool_;
  Batch rows_;
  std::vector<std::vector<int32_t>> prompts_;
  rlhf::Loss loss_ = rlhf::make_loss("completions", "nll", {});
  std::shared_ptr<model::Weights> weights_;
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<train::Learner> learner_;
};

// Calls body(rank) on kRanks threads at once and returns when all have ended.
void on_ranks(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::unique_ptr<Rank>> make_ranks(const std::string& axis, const shape::ModelShape& shape,
                                              ComputeType compute) {
  std::vector<std::unique_ptr<Rank>> ranks(kRanks);
  on_ranks([&](int rank) {
    auto group = comm::back_end("threads").join({"bench " + axis, "", rank, kRanks, kDeadline});
    base::at(ranks, rank) = std::make_unique<Rank>(shape, compute, axis, 1, std::move(group));
  });
  return ranks;
}

void ranks_of(const std::string& model, ComputeType compute, int rounds) {
  const shape::ModelShape shape = model_shape(model);
  Rank one(shape, compute, "", kRanks, comm::back_end("threads").join({"bench alone", "", 0, 1, kDeadline}));
  const auto dp = make_ranks("dp", shape, compute), tp = make_ranks("tp", shape, compute),
             pp = make_ranks("pp", shape, compute);
  using Work = void (Rank::*)();
  for (const auto& [name, of_rank] :
       {std::pair<const char*, Work>("update", &Rank::update), {"generate", &Rank::generate}}) {
    const Work work = of_rank;
    const auto time_of = [work](const std::vector<std::unique_ptr<Rank>>& ranks) {
      return std::vector{seconds_of([&] { on_ranks([&](int rank) { (*base::at(ranks, rank).*work)(); }); })};
    };
    const auto spreads =
        take_turns(rounds, {[&] { return std::vector{seconds_of([&] { (one.*work)(); })}; },
                            [&] { return time_of(dp); }, [&] { return time_of(tp); }, [&] { return time_of(pp); }});
    for (const auto& [axis, side] : {std::pair("dp", 1), {"tp", 2}, {"pp", 3}}) {
      const Spread &single = spreads[0][0], &ranks = base::at(spreads, side)[0];
      fmt::print("{:30} {:>32} ms, one process {:>32} ms, ratio {:.2f}{}\n",
                 fmt::format("{} {} {} {}=2", name, model, name_of(compute), axis), in_ms(ranks), in_ms(single),
                 single.median / ranks.median, tie(single, ranks) ? " tie" : "");
    }
    std::fflush(stdout);
  }
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

// Returns median and 99th percentile of the seconds of `calls` all-reduces, as rank 0 measures them.
std::vector<double> all_reduces(const std::string& kind, int64_t floats, int64_t calls) {
  const comm::BackEnd& ends = comm::back_end(kind);
  const auto store = ends.open_store();
  std::vector<double> samples(static_cast<size_t>(calls));
  static int run = 0;
  const std::string name = fmt::format("bench {}", run++);
  on_ranks([&](int rank) {
    pin_to(rank);
    const auto group = ends.join({name, store->address(), rank, kRanks, kDeadline});
    std::vector<float> values = noise(floats);
    for (int64_t call = -calls / 10; call < calls; ++call) {
      const double begin = base::now_seconds();
      group->all_reduce(values).wait(kDeadline);
      if (rank == 0 && call >= 0) base::at(samples, call) = base::now_seconds() - begin;
    }
  });
  std::sort(samples.begin(), samples.end());
  return {samples[samples.size() / 2], samples[samples.size() * 99 / 100]};
}

void collectives(int rounds) {
  constexpr int64_t kSmall = 256, kLarge = int64_t{1} << 20;
  const std::vector<float> from = noise(kLarge);
  std::vector<float> to(from.size());
  const auto copy = [&] {
    return std::vector{seconds_per_call([&] { std::memcpy(to.data(), from.data(), kLarge * sizeof(float)); })};
  };
  for (const comm::BackEnd& ends : comm::back_ends()) {
    const auto spreads = take_turns(rounds, {[&] { return all_reduces(ends.name, kSmall, 100000); },
                                             [&] { return all_reduces(ends.name, kLarge, 200); }, copy});
    const auto gigabytes = [](const Spread& seconds) { return kLarge * sizeof(float) / seconds.median / 1e9; };
    fmt::print(
        "all-reduce 1 KiB {:10} p50 {:.2f} ({:.2f} .. {:.2f}) us, p99 {:.2f} us; 4 MiB {:.2f} GB/s, memcpy {:.2f} "
        "GB/s, ratio {:.2f}\n",
        ends.name, 1e6 * spreads[0][0].median, 1e6 * spreads[0][0].least, 1e6 * spreads[0][0].largest,
        1e6 * spreads[0][1].median, gigabytes(spreads[1][0]), gigabytes(spreads[2][0]),
        gigabytes(spreads[1][0]) / gigabytes(spreads[2][0]));
    std::fflush(stdout);
  }
}

void run(Words words) {
  const std::vector<std::string> parts = words.among({"chunks", "ranks", "collectives"});
  const std::vector<std::string> models = words.among({"260k", "15m", "110m"}, {"15m", "110m"});
  const std::vector<std::string> types = words.among({"float32", "bfloat16"});
  tensor::use_one_aten_thread();
  const Machine machine(words);
  const Exec& exec = machine.exec;
  for (const std::string& part : parts) {
    if (part == "collectives") collectives(words.rounds());
    if (part == "collectives") continue;
    for (const std::string& type : types)
      for (const std::string& model : models) {
        const ComputeType compute = tensor::compute_type_of(type);
        if (part == "ranks") ranks_of(model, compute, words.rounds());
        if (part == "ranks") continue;
        for (const LinearLayer& layer : linear_layers(model_shape(model)))
          for (const int64_t rows : {1, 8, 256}) chunks_of_layer(exec, model, layer, compute, rows, words.rounds());
      }
  }
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_layouts", argc, argv, &collimate::bench::run);
}

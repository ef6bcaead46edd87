// Measures the memory of ranks that train one model together, and of ways to save memory:
//   bench_memory [zero savings] [15m 260k 110m] [float32 bfloat16]
// zero prints for 2 and 4 ranks and each stage of ZeRO: the peak MiB, by purpose, of the rank with the most in an SFT
// update with recompute, each also in per cent of what the memory plan says; the sum; and the time of a second update.
// savings prints for one rank and each way to save memory: the MiB that passes and optimizer take, and the mean time of
// five updates.
#include <algorithm>
#include <filesystem>
#include <map>
#include <thread>

#include "bench/models.h"
#include "bench/peaks.h"
#include "bench/rows.h"
#include "bench/words.h"
#include "collimate/base/deadline.h"
#include "collimate/comm/group.h"
#include "collimate/model/memory_plan.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/train/learner.h"

namespace collimate::bench {
namespace {

constexpr int kFirstWorker = 10;  // the worker number of rank 0 in memory reports
constexpr double kWait = 60;      // seconds
constexpr int64_t kRowsOfAll = 8, kRowTokens = 128;

struct Taken {
  std::map<std::string, int64_t> peaks;  // by purpose
  double seconds = 0;
};

Taken taken_by(comm::Group& group, int zero, const shape::ModelShape& shape, model::WeightsOptions options) {
  const int worker = kFirstWorker + group.rank();
  const tensor::MemoryScope scope(worker, "tensors");
  tensor::reset_memory_peaks(worker);
  host::CorePool pool(1);
  if (zero == 3) options.ranks.shares = {{&group, kWait}, group.rank(), group.size()};
  const auto weights = std::make_shared<model::Weights>(shape, options, tensor::Exec{&pool});
  weights->initialize(1, 0.02F);
  model::Model model(weights, {&pool});
  train::Learner learner(model, {.schedule = {.peak = 1e-6}, .zero = zero, .recompute = model::Recompute::kFull},
                         {&pool}, {&group});
  const int64_t rows = kRowsOfAll / group.size();
  const Batch own = sft_rows(group.rank() * rows, rows, kRowTokens, shape.vocabulary);
  const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
  learner.update(own, rlhf::objective_of(loss));
  const double begin = base::now_seconds();
  learner.update(own, rlhf::objective_of(loss));
  Taken taken{.seconds = base::now_seconds() - begin};
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == worker && use.purpose.starts_with("model/")) taken.peaks[use.purpose.substr(6)] = use.peak_bytes;
  return taken;
}

void stage_of(const std::string& name, tensor::ComputeType compute, int ranks, int zero) {
  const shape::ModelShape shape = model_shape(name);
  const model::WeightsOptions options{.trained = true, .compute = compute};
  std::vector<Taken> taken(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto group =
          comm::back_end("threads").join({fmt::format("memory {} {}", ranks, zero), "", rank, ranks, kWait});
      base::at(taken, rank) = taken_by(*group, zero, shape, options);
    });
  for (std::thread& thread : threads) thread.join();
  model::WeightsOptions planned = options;
  if (zero == 3) planned.ranks.shares.ranks = ranks;
  int64_t sum = 0, plan = 0;
  fmt::print("{} {} {} ranks zero {}:", name, name_of(compute), ranks, zero);
  for (const tensor::MemoryItem& item : model::weights_memory(shape, planned, model::Sharing{zero, ranks})) {
    const int64_t peak = taken.back().peaks[item.purpose];
    fmt::print("  {} {:.1f} ({:.1f} %)", item.purpose, static_cast<double>(peak) / (1 << 20),
               100.0 * static_cast<double>(peak) / static_cast<double>(item.bytes));
    sum += peak, plan += item.bytes;
  }
  fmt::print("  sum {:.1f} ({:.1f} %)  update {:.0f} ms\n", static_cast<double>(sum) / (1 << 20),
             100.0 * static_cast<double>(sum) / static_cast<double>(plan), taken.back().seconds * 1e3);
  std::fflush(stdout);
}

// A Saving is a way to save memory in training.
struct Saving {
  const char* name;
  model::Recompute recompute = model::Recompute::kNone;
  bool away = false;  // the optimizer's state is in a file in the working directory
};

// Measures one way to save memory, with all rows in one micro-batch.
void saving_of(const std::string& name, tensor::ComputeType compute, const Saving& saving) {
  constexpr int64_t kUpdates = 5, kTokens = kRowsOfAll * kRowTokens;
  const tensor::MemoryScope scope(kFirstWorker, "tensors");
  const shape::ModelShape shape = model_shape(name);
  const model::WeightsOptions options{.trained = true, .compute = compute};
  host::CorePool pool(host::thread_count());
  const auto weights = std::make_shared<model::Weights>(shape, options, tensor::Exec{&pool});
  weights->initialize(1, 0.02F);
  model::Model model(weights, {&pool});
  train::LearnerOptions learning{
      .schedule = {.peak = 1e-6}, .micro_batch_tokens = kTokens, .recompute = saving.recompute};
  if (saving.away) learning.away = std::make_shared<tensor::AwayFile>(std::filesystem::current_path());
  tensor::reset_memory_peaks(kFirstWorker);
  train::Learner learner(model, learning, {&pool});
  const Batch own = sft_rows(0, kRowsOfAll, kRowTokens, shape.vocabulary);
  const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
  learner.update(own, rlhf::objective_of(loss));
  const double begin = base::now_seconds();
  for (int64_t i = 0; i < kUpdates; ++i) learner.update(own, rlhf::objective_of(loss));
  const double seconds = (base::now_seconds() - begin) / kUpdates;
  fmt::print("{} {} {}:", name, name_of(compute), saving.name);
  for (const tensor::MemoryUse& use : tensor::memory_report())
    for (const char* item : {"activations", "workspace", "optimizer"})
      if (use.worker == kFirstWorker && use.purpose == std::string("model/") + item)
        fmt::print("  {} {:.1f}", item, static_cast<double>(use.peak_bytes) / (1 << 20));
  fmt::print("  update {:.0f} ms\n", seconds * 1e3);
  std::fflush(stdout);
}

void run_memory(Words words) {
  const std::vector<std::string> what = words.among({"zero", "savings"});
  const std::vector<std::string> models = words.among({"260k", "15m", "110m"}, {"15m"});
  const std::vector<std::string> types = words.among({"float32", "bfloat16"});
  tensor::use_one_aten_thread();
  words.all_known();
  const auto asked = [&](const char* word) { return std::ranges::find(what, word) != what.end(); };
  for (const std::string& model : models)
    for (const std::string& type : types)
      for (const Saving& saving :
           {Saving{"nothing"}, Saving{"recompute selective", model::Recompute::kSelective},
            Saving{"recompute full", model::Recompute::kFull}, Saving{"optimizer away", model::Recompute::kNone, true}})
        if (asked("savings")) saving_of(model, tensor::compute_type_of(type), saving);
  if (!asked("zero")) return;
  for (const std::string& model : models)
    for (const std::string& type : types)
      for (const int ranks : {2, 4})
        for (const int zero : {0, 1, 2, 3}) stage_of(model, tensor::compute_type_of(type), ranks, zero);
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_memory", argc, argv, &collimate::bench::run_memory);
}

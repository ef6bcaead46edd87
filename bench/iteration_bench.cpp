// Measures where the time of a GRPO iteration and of an SFT step goes, on Llamas, or models of the shapes that
// directories with config.json have, with random weights:
//   bench_iteration [repeats] [15m 260k 110m DIRECTORY/…] [float32 bfloat16] [generation reference update sft]
// The default is 15m in float32 and all phases. Each line has the FLOPs of the work (a multiply-add counts as two; a
// prompt's tokens count once for all of its samples; work that is done twice counts once), the FLOPs with each sample's
// prompt counted in reference and update, the median, least and largest seconds, CPU seconds of all threads, and
// FLOPs / peak / time from the first count. The peak is the best of MKL's and our GEMM and of a loop in registers, over
// sizes and repeats, in this run.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/models.h"
#include "bench/peaks.h"
#include "bench/rows.h"
#include "bench/words.h"
#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/generate/engine.h"
#include "collimate/host/cpu.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/train/learner.h"
#include "collimate/train/scoring.h"

namespace collimate::bench {
namespace {

using tensor::ComputeType;
using tensor::Exec;

constexpr int64_t kPrompts = 8, kSamples = 8, kPromptTokens = 64, kNewTokens = 128, kSftRows = 8, kSftTokens = 512;

rusage usage() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u;
}

double cpu() {
  const rusage u = usage();
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

// Flops are those of a phase: with a prompt counted once for its samples (shared), or once for each sample (apart).
struct Flops {
  double shared = 0, apart = 0;
  Flops times(double factor) const { return {factor * shared, factor * apart}; }
};

class Bench {
 public:
  Bench(Exec exec, int repeats, const std::string& name, ComputeType compute, double peak)
      : exec_(exec), repeats_(repeats), compute_(compute), peak_(peak), shape_(model_shape(name)) {
    fmt::print("{} {}\n{:20} {:>8} {:>8} {:>10} {:>10} {:>10} {:>8} {:>7}\n", name, tensor::name_of(compute), "phase",
               "GFLOP", "apart", "median s", "least s", "largest s", "CPU s", "share");
    weights_ = weights(true);
    model_ = std::make_unique<model::Model>(weights_, exec_);
  }

  void generation() {
    generate::SamplingParams sampling{.max_tokens = kNewTokens, .ignore_eos = true};
    generate::EngineOptions options{.samples_per_prompt = kSamples};
    options.service.exec = exec_;
    options.service.eos_ids = {2};
    const auto prompts = prompt_ids();
    measure("generation", generation_flops(),
            [&] { completions_ = generate_all(*model_, prompts, sampling, options); });
  }

  void reference() {
    const Batch rows = samples();
    model::Model frozen(weights(false), exec_);
    measure("reference", forward_flops(), [&] { train::with_log_probs(frozen, rows, batch::kReferenceLogProbs, {}); });
  }

  void update() {
    Batch rows = samples();
    rows = train::with_log_probs(*model_, rows, batch::kReferenceLogProbs, {});
    rlhf::LossSetting setting;
    setting.options.beta = 0.04;
    const rlhf::Loss loss = rlhf::make_loss("rollouts", "grpo", setting);
    train::Learner learner(*model_, {.schedule = {.peak = 1e-6}}, exec_);
    measure("update (GRPO, KL)", forward_flops().times(3), [&] { learner.update(rows, rlhf::objective_of(loss)); });
  }

  // Prints the work of all phases that were measured so far.
  void total() const { fmt::print("{:20} {:8.1f} {:8.1f}\n", "together", all_.shared / 1e9, all_.apart / 1e9); }

  void sft() {
    const Batch rows = sft_rows(0, kSftRows, kSftTokens, shape_.vocabulary);
    const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
    train::Learner learner(*model_, {.schedule = {.peak = 1e-6}}, exec_);
    const double flops = 3 * flops_of(shape_, kSftRows, 0, kSftTokens, kSftTokens - 1);
    measure("SFT step", {flops, flops}, [&] { learner.update(rows, rlhf::objective_of(loss)); });
  }

 private:
  // Generation computes a prompt once for all of its samples, so both counts are equal. The forward of a last token,
  // which nothing needs, does not count.
  Flops generation_flops() const {
    const double all = flops_of(shape_, kPrompts, 0, kPromptTokens, 1) +
                       flops_of(shape_, kPrompts * kSamples, kPromptTokens, kNewTokens - 1, kNewTokens - 1);
    return {all, all};
  }
  Flops forward_flops() const {
    return {flops_of(shape_, kPrompts, 0, kPromptTokens, 0) +
                flops_of(shape_, kPrompts * kSamples, kPromptTokens, kNewTokens, kNewTokens),
            flops_of(shape_, kPrompts * kSamples, 0, kPromptTokens + kNewTokens, kNewTokens)};
  }

  std::shared_ptr<model::Weights> weights(bool trained) const {
    auto w =
        std::make_shared<model::Weights>(shape_, model::WeightsOptions{.trained = trained, .compute = compute_}, exec_);
    w->initialize(1, 0.02F);
    return w;
  }

  std::vector<std::vector<int32_t>> prompt_ids() const {
    std::vector<std::vector<int32_t>> prompts(kPrompts);
    for (uint64_t p = 0; p < kPrompts; ++p)
      for (uint64_t t = 0; t < kPromptTokens; ++t) prompts[p].push_back(token(p * 1000 + t, shape_.vocabulary));
    return prompts;
  }

  // Returns the generated samples, or random ones if generation was not run.
  Batch samples() const {
    const auto prompts = prompt_ids();
    batch::TokenRows tokens;
    std::vector<int64_t> groups, lengths;
    std::vector<std::vector<float>> log_probs, advantages;
    for (int64_t i = 0; i < kPrompts * kSamples; ++i) {
      std::vector<int32_t> row = base::at(prompts, i / kSamples);
      std::vector<float> lp(kPromptTokens + kNewTokens, -10.0F);
      for (int64_t t = 0; t < kNewTokens; ++t)
        row.push_back(token(static_cast<uint64_t>(77777 + i * 131 + t), shape_.vocabulary));
      if (!completions_.empty()) {
        const auto& c = base::at(completions_, i);
        std::copy(c.tokens.begin(), c.tokens.end(), row.begin() + kPromptTokens);
        std::copy(c.log_probs.begin(), c.log_probs.end(), lp.begin() + kPromptTokens);
      }
      groups.push_back(i / kSamples), lengths.push_back(kPromptTokens), log_probs.push_back(lp);
      tokens.add(i, row, kPromptTokens);
      advantages.emplace_back(row.size(), i % 2 == 0 ? 1.0F : -1.0F);
    }
    Batch out = tokens.batch();
    out.set(batch::kPromptUid, groups), out.set(batch::kPromptTokens, lengths);
    out.set_ragged(batch::kLogProbs, log_probs), out.set_ragged(batch::kAdvantages, advantages);
    return out;
  }

  void measure(const std::string& name, const Flops& flops, const std::function<void()>& body) {
    all_.shared += flops.shared, all_.apart += flops.apart;
    std::vector<double> walls, cpus;
    for (int i = 0; i <= repeats_; ++i) {
      const double begin = base::now_seconds(), used = cpu();
      body();
      if (i == 0 && repeats_ > 0) continue;  // warm-up
      walls.push_back(base::now_seconds() - begin), cpus.push_back(cpu() - used);
    }
    const Spread wall = spread_of(walls);
    const double spent = *std::min_element(cpus.begin(), cpus.end()), work = flops.shared / 1e9;
    fmt::print("{:20} {:8.1f} {:8.1f} {:10.3f} {:10.3f} {:10.3f} {:8.3f} {:6.1f}% (of CPU time {:.1f}%)\n", name, work,
               flops.apart / 1e9, wall.median, wall.least, wall.largest, spent, 100 * work / peak_ / wall.median,
               100 * work / (peak_ / exec_.threads()) / spent);
    std::fflush(stdout);
  }

  Exec exec_;
  int repeats_;
  ComputeType compute_;
  double peak_;  // GFLOP/s
  shape::ModelShape shape_;
  Flops all_;
  std::shared_ptr<model::Weights> weights_;
  std::unique_ptr<model::Model> model_;
  std::vector<generate::Completion> completions_;
};

void phases(Bench& measured, const std::vector<std::string>& wanted) {
  const std::map<std::string, void (Bench::*)()> known = {{"generation", &Bench::generation},
                                                          {"reference", &Bench::reference},
                                                          {"update", &Bench::update},
                                                          {"sft", &Bench::sft}};
  for (const std::string& phase : wanted) {
    (measured.*known.at(phase))();
    if (phase == "update") measured.total();
  }
}

void run(Words words) {
  const std::vector<std::string> directories = words.directories();
  std::vector<std::string> models = words.among({"260k", "15m", "110m"}, {directories.empty() ? "15m" : ""});
  std::erase(models, "");
  models.insert(models.end(), directories.begin(), directories.end());
  const std::vector<std::string> types = words.among({"float32", "bfloat16"}, {"float32"});
  const std::vector<std::string> wanted = words.among({"generation", "reference", "update", "sft"});
  words.all_known();
  tensor::use_one_aten_thread();
  host::CorePool pool(host::core_count());
  const Exec exec{&pool};
  print_machine(exec);
  for (const std::string& type : types) {
    const ComputeType compute = tensor::compute_type_of(type);
    const Peaks peaks = peaks_of(exec, compute);
    print_peaks(compute, peaks);
    for (const std::string& name : models) {
      Bench measured(exec, words.rounds(), name, compute, peaks.best());
      phases(measured, wanted);
    }
  }
  fmt::print("peak memory of this process {} MB\n", usage().ru_maxrss / 1024);
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_iteration", argc, argv, &collimate::bench::run);
}

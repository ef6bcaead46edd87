// Where the time of a GRPO iteration and of an SFT step goes, on a Llama of 15M parameters with random weights:
//   bench_iteration [repeats] [float32 or bfloat16] [generation reference update sft …]
// Each line: FLOPs of the work (a multiply-add is two; nothing that is computed twice counts twice), the median, least
// and largest seconds, CPU seconds of all threads, and FLOPs / peak / time. Peak: the best of MKL's and our GEMM and of
// a loop in registers, over sizes and repeats, in this run.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/ones.h>
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/engine.h"
#include "collimate/host/cpu.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/tensor/kernels/isa.h"
#include "collimate/tensor/kernels/peak.h"
#include "collimate/train/learner.h"
#include "collimate/train/scoring.h"

namespace {

using collimate::Batch;
using collimate::tensor::ComputeType;
using collimate::tensor::Exec;
namespace base = collimate::base;
namespace batch = collimate::batch;
namespace generate = collimate::generate;
namespace model = collimate::model;
namespace rlhf = collimate::rlhf;
namespace tensor = collimate::tensor;
namespace train = collimate::train;

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

collimate::shape::ModelShape shape_15m() {
  collimate::shape::ModelShape s;
  s.family = "llama";
  s.vocabulary = 32000, s.hidden = 288, s.layers = 6, s.heads = s.kv_heads = 6, s.head_dim = 48, s.intermediate = 768;
  s.max_positions = 2048;
  s.tied_embeddings = true;
  return s;
}

// FLOPs of one forward over sequences of `tokens` tokens after `before` shared ones, with the head at `heads` of them.
double flops_of(const collimate::shape::ModelShape& s, double sequences, double before, double tokens, double heads) {
  double weights = 0;
  for (const auto& spec : collimate::shape::param_specs(s))
    if (spec.kind == collimate::shape::ParamKind::kLinear) weights += static_cast<double>(spec.count());
  const double pairs = tokens * before + tokens * (tokens + 1) / 2;
  const double attention = 2.0 * static_cast<double>(s.layers * s.heads * s.head_dim) * pairs;
  return 2.0 * sequences * (tokens * weights + attention + heads * static_cast<double>(s.vocabulary * s.hidden));
}

double best_rate(double flops, const std::function<void()>& body) {
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const double t = base::now_seconds();
    body();
    best = std::min(best, base::now_seconds() - t);
  }
  return flops / best / 1e9;
}

double mkl_peak(int threads, ComputeType compute) {
  at::set_num_threads(threads);
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const auto type = compute == ComputeType::kFloat32 ? at::kFloat : at::kBFloat16;
    const at::Tensor a = at::ones({n, n}, type), b = at::ones({n, n}, type);
    best = std::max(best, best_rate(2.0 * static_cast<double>(n * n * n), [&] { at::_ops::mm::call(a, b); }));
  }
  tensor::use_one_aten_thread();
  return best;
}

double own_peak(const Exec& exec, ComputeType compute) {
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const auto floats = static_cast<size_t>(n * n);
    const std::vector<float> w(floats, 1.0F), x(floats, 1.0F);
    std::vector<float> y(floats);
    tensor::LinearPanels panels;
    tensor::pack_linear(exec, w.data(), n, n, compute, 1, panels);
    best = std::max(best, best_rate(2.0 * static_cast<double>(n * n * n),
                                    [&] { tensor::linear(exec, x.data(), n, n, panels, y.data(), n); }));
  }
  return best;
}

class Bench {
 public:
  Bench(Exec exec, int repeats, ComputeType compute) : exec_(exec), repeats_(repeats), compute_(compute) {
    const double mkl = mkl_peak(exec.threads(), compute), own = own_peak(exec, compute);
    const double loop = compute == ComputeType::kFloat32 ? tensor::fma_peak(exec) : tensor::dot_peak(exec);
    peak_ = std::max({mkl, own, loop});
    fmt::print(
        "{}\n{}, isa {}, {} threads; GFLOP/s: MKL GEMM {:.1f}, our GEMM {:.1f}, register loop {:.1f}; peak {:.1f}\n",
        collimate::host::cpu_model(), tensor::name_of(compute), tensor::name_of(tensor::instruction_set()),
        exec.threads(), mkl, own, loop, peak_);
    fmt::print("{:20} {:>8} {:>10} {:>10} {:>10} {:>8} {:>7}\n", "phase", "GFLOP", "median s", "least s", "largest s",
               "CPU s", "share");
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
    measure("update (GRPO, KL)", 3 * forward_flops(), [&] { learner.update(rows, objective(loss)); });
  }

  void sft() {
    const Batch rows = sft_rows();
    const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
    train::Learner learner(*model_, {.schedule = {.peak = 1e-6}}, exec_);
    const double flops = 3 * flops_of(shape_15m(), kSftRows, 0, kSftTokens, kSftTokens - 1);
    measure("SFT step", flops, [&] { learner.update(rows, objective(loss)); });
  }

 private:
  static double generation_flops() {
    return flops_of(shape_15m(), kPrompts, 0, kPromptTokens, 1) +
           flops_of(shape_15m(), kPrompts * kSamples, kPromptTokens, kNewTokens - 1, kNewTokens - 1);
  }
  // A prompt's tokens count once.
  static double forward_flops() {
    return flops_of(shape_15m(), kPrompts, 0, kPromptTokens, 0) +
           flops_of(shape_15m(), kPrompts * kSamples, kPromptTokens, kNewTokens, kNewTokens);
  }

  std::shared_ptr<model::Weights> weights(bool trained) const {
    auto w = std::make_shared<model::Weights>(shape_15m(),
                                              model::WeightsOptions{.trained = trained, .compute = compute_}, exec_);
    w->initialize(1, 0.02F);
    return w;
  }

  static int32_t token(uint64_t i) { return static_cast<int32_t>(3 + (i * 2654435761U) % 31997); }

  static std::vector<std::vector<int32_t>> prompt_ids() {
    std::vector<std::vector<int32_t>> prompts(kPrompts);
    for (uint64_t p = 0; p < kPrompts; ++p)
      for (uint64_t t = 0; t < kPromptTokens; ++t) prompts[p].push_back(token(p * 1000 + t));
    return prompts;
  }

  // The generated samples, or random ones where generation was not run.
  Batch samples() const {
    const auto prompts = prompt_ids();
    std::vector<int64_t> uids, groups, lengths;
    std::vector<std::vector<int32_t>> ids;
    std::vector<std::vector<uint8_t>> trainable;
    std::vector<std::vector<float>> log_probs, advantages;
    for (int64_t i = 0; i < kPrompts * kSamples; ++i) {
      std::vector<int32_t> row = prompts[static_cast<size_t>(i / kSamples)];
      std::vector<float> lp(kPromptTokens + kNewTokens, -10.0F);
      for (int64_t t = 0; t < kNewTokens; ++t) row.push_back(token(static_cast<uint64_t>(77777 + i * 131 + t)));
      if (!completions_.empty()) {
        const auto& c = completions_[static_cast<size_t>(i)];
        std::copy(c.tokens.begin(), c.tokens.end(), row.begin() + kPromptTokens);
        std::copy(c.log_probs.begin(), c.log_probs.end(), lp.begin() + kPromptTokens);
      }
      uids.push_back(i), groups.push_back(i / kSamples), lengths.push_back(kPromptTokens);
      ids.push_back(row), log_probs.push_back(lp);
      trainable.emplace_back(row.size(), 1);
      std::fill_n(trainable.back().begin(), kPromptTokens, 0);
      advantages.emplace_back(row.size(), i % 2 == 0 ? 1.0F : -1.0F);
    }
    Batch out;
    out.set(batch::kUid, uids), out.set(batch::kPromptUid, groups), out.set(batch::kPromptTokens, lengths);
    out.set_ragged(batch::kIds, ids), out.set_ragged(batch::kTrainable, trainable);
    out.set_ragged(batch::kLogProbs, log_probs), out.set_ragged(batch::kAdvantages, advantages);
    return out;
  }

  static Batch sft_rows() {
    std::vector<int64_t> uids;
    std::vector<std::vector<int32_t>> ids(kSftRows);
    std::vector<std::vector<uint8_t>> trainable;
    for (uint64_t i = 0; i < kSftRows; ++i) {
      uids.push_back(static_cast<int64_t>(i));
      for (uint64_t t = 0; t < kSftTokens; ++t) ids[i].push_back(token(i * 1000 + t));
      trainable.emplace_back(kSftTokens, 1);
      trainable.back()[0] = 0;
    }
    Batch out;
    out.set(batch::kUid, uids);
    out.set_ragged(batch::kIds, ids), out.set_ragged(batch::kTrainable, trainable);
    return out;
  }

  static train::Objective objective(const rlhf::Loss& loss) {
    return {loss.needs, [&loss](const Batch& rows, const batch::Quantities& q, const batch::GlobalCounts& counts) {
              rlhf::LossContext context(rows, q, counts);
              return loss.value(context);
            }};
  }

  void measure(const std::string& name, double flops, const std::function<void()>& body) const {
    std::vector<double> walls, cpus;
    for (int i = 0; i <= repeats_; ++i) {
      const double begin = base::now_seconds(), used = cpu();
      body();
      if (i == 0 && repeats_ > 0) continue;  // warm-up
      walls.push_back(base::now_seconds() - begin), cpus.push_back(cpu() - used);
    }
    std::sort(walls.begin(), walls.end());
    const double median = walls[walls.size() / 2], least = walls.front();
    const double spent = *std::min_element(cpus.begin(), cpus.end());
    fmt::print("{:20} {:8.1f} {:10.3f} {:10.3f} {:10.3f} {:8.3f} {:6.1f}% (of CPU time {:.1f}%)\n", name, flops / 1e9,
               median, least, walls.back(), spent, 100 * flops / 1e9 / peak_ / median,
               100 * flops / 1e9 / (peak_ / exec_.threads()) / spent);
    std::fflush(stdout);
  }

  Exec exec_;
  int repeats_;
  ComputeType compute_;
  double peak_ = 0;
  std::shared_ptr<model::Weights> weights_;
  std::unique_ptr<model::Model> model_;
  std::vector<generate::Completion> completions_;
};

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 5;
  const std::string compute = argc > 2 ? argv[2] : "float32";
  const std::set<std::string> only(argv + std::min(argc, 3), argv + argc);
  const auto wants = [&](const char* what) { return only.empty() || only.contains(what); };
  tensor::use_one_aten_thread();
  collimate::host::CorePool pool(collimate::host::core_count());
  Bench bench({&pool}, repeats, tensor::compute_type_of(compute));
  if (wants("generation")) bench.generation();
  if (wants("reference")) bench.reference();
  if (wants("update")) bench.update();
  if (wants("sft")) bench.sft();
  fmt::print("peak memory of this process {} MB\n", usage().ru_maxrss / 1024);
  return 0;
}

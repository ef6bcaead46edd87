#include <gtest/gtest.h>

#include "collimate/base/fault.h"
#include "collimate/base/immovable.h"
#include "collimate/rlhf/loss/list.h"
#include "tests/parity/small_rollout.h"
#include "tests/support/fault_control.h"
#include "tests/support/small_families.h"

// Every kernel of forward takes one ulp from one number of each row that it writes, in one phase alone: the steps that
// run prompts, those that decode, the update, or the check pass before several updates. What a run compares must
// differ. The number is the row's largest: its ulp is not lost when the row is summed, and among logits it is the one
// that all log-probs of the row read. Samples are drawn at a temperature, so that logits are scaled.
namespace collimate::test {
namespace {

constexpr float kTemperature = 0.7F;

// While it lives a kernel is wrong: "kernel@phase" in one phase, "kernel" in all of them; "" for none.
class Nudged : private base::Immovable {
 public:
  explicit Nudged(const std::string& where) { base::nudge_for_tests(where); }
  ~Nudged() { base::nudge_for_tests(""); }
};

// A model, and its kernels in the order in which forward runs them.
struct KernelCase {
  std::string family;
  std::vector<std::string> kernels;
  tensor::ComputeType compute = tensor::ComputeType::kFloat32;
  bool lora = false;
  bool dora = false;

  bool bf16() const { return tensor::is_bf16(compute); }
  std::string name() const {
    return fmt::format("{}_{}{}", family, tensor::name_of(compute), dora ? "_dora" : lora ? "_lora" : "");
  }
};

const std::vector<std::string> kLlama = {"embedding", "rms_norm", "linear",       "rope",       "append_kv",
                                         "attention", "silu_mul", "scale_logits", "log_softmax"};
const std::vector<std::string> kGpt2 = {"embedding", "layer_norm", "linear",       "append_kv",
                                        "attention", "gelu_tanh",  "scale_logits", "log_softmax"};

const std::vector<std::string> kQwen3 = {"head_norm"};  // what Llama has not
const std::vector<std::string> kMixtral = {"route", "combine_experts"};
const std::vector<std::string> kGptOss = {
    "embedding",         "rms_norm",       "linear",      "rope",  "append_kv",
    "attention",         "scale_logits",   "log_softmax", "route", "combine_experts",
    "bounded_swish_mul", "add_expert_bias"};
const std::vector<std::string> kSharedGate = {"sigmoid"};
const std::vector<std::string> kOpt = {"embedding", "layer_norm", "linear",       "append_kv",
                                       "attention", "relu",       "scale_logits", "log_softmax"};

const std::vector<std::string> kNeox = {"embedding", "layer_norm", "linear",       "rope",       "append_kv",
                                        "attention", "gelu",       "scale_logits", "log_softmax"};

std::vector<std::string> with(std::vector<std::string> kernels, const std::vector<std::string>& more) {
  kernels.insert(kernels.end(), more.begin(), more.end());
  return kernels;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> all = {{"llama", kLlama},
                                 {"gpt2", kGpt2},
                                 {"opt", kOpt},
                                 {"gpt_neox", kNeox},
                                 {"qwen3", with(kLlama, kQwen3)},
                                 {"mixtral", with(kLlama, kMixtral)},
                                 {"gpt_oss", kGptOss},
                                 {"deepseek_v3", with(kLlama, kMixtral)},
                                 {"qwen2_moe", with(with(kLlama, kMixtral), kSharedGate)},
                                 {"llama", with(kLlama, {"scale"}), tensor::ComputeType::kFloat32, true},
                                 {"llama", {"scale_columns"}, tensor::ComputeType::kFloat32, true, true}};
  for (const auto order : {tensor::ComputeType::kBFloat16Amx, tensor::ComputeType::kBFloat16Dot}) {
    all.push_back({"llama", with(kLlama, {"round_bf16"}), order});
    all.push_back({"gpt2", with(kGpt2, {"round_bf16"}), order});
    all.push_back({"llama", with(kLlama, {"round_bf16", "scale"}), order, true});
  }
  return all;
}

class KernelFault : public testing::TestWithParam<KernelCase> {
 protected:
  void SetUp() override { write_small_model_of(GetParam().family, path()); }
  const fs::path& path() const { return scratch_.path(); }

  // The largest difference that an update finds, or the check pass, after a rollout by the same weights.
  double mismatch(const std::string& where, bool checked) {
    const Nudged nudged(where);
    SmallLearner small(path(), "lm", 30, 1, nullptr,
                       {.trained = true,
                        .compute = GetParam().compute,
                        .lora = {.rank = GetParam().lora ? 3 : 0, .alpha = 2, .dora = GetParam().dora}});
    small.learner = std::make_unique<train::Learner>(
        *small.model, train::LearnerOptions{.micro_batch_tokens = 30, .temperature = kTemperature}, small.exec);
    generate::ServiceOptions options = rollout_options(small);
    options.sampling.temperature = kTemperature;
    generate::Service service(*small.model, options);
    service.submit(rollout_requests());
    while (service.step()) {
    }
    const Batch rows = rollout_rows(service.take());
    const batch::GlobalCounts counts = train::count_rows(rows);
    const train::Mismatch found =
        checked ? small.learner->check(rows)
                : small.accumulate(rows, rlhf::make_loss("completions", "nll", {}), counts).mismatch;
    EXPECT_EQ(found.tokens_compared, static_cast<int64_t>(counts.tokens));
    return found.log_prob_abs_max;
  }

  static std::string ulp() { return GetParam().bf16() ? "/bf16" : ""; }

  Scratch scratch_{"kernel-fault"};
};

// One ulp is of bf16 where that is the type of products: what they read is rounded to it, and with it most faults of
// one ulp of fp32.
TEST_P(KernelFault, OneUlpInOnePhaseIsNoticed) {
  for (const std::string& kernel : GetParam().kernels) {
    for (const std::string phase : {"prefill", "decode", "training", "scoring"}) {
      const double moved = mismatch(kernel + "@" + phase + ulp(), phase == "scoring");
      EXPECT_GT(moved, 0.0) << kernel << " in " << phase;
      EXPECT_LT(moved, GetParam().bf16() ? 1.0 : 1e-4) << kernel << " in " << phase;
    }
  }
}

// Nothing rounds these to bf16 any more.
TEST_P(KernelFault, OneUlpOfFp32InLogitsIsNoticed) {
  for (const std::string kernel : {"linear", "scale_logits", "log_softmax"}) {
    for (const std::string phase : {"prefill", "decode", "training", "scoring"})
      EXPECT_GT(mismatch(kernel + "@" + phase, phase == "scoring"), 0.0) << kernel << " in " << phase;
  }
}

// A fault that is the same everywhere is no mismatch: the nudge itself does not depend on how rows are batched.
TEST_P(KernelFault, InNoneOrAllOfThemTheyAgree) {
  for (const bool checked : {false, true}) {
    EXPECT_EQ(mismatch("", checked), 0.0);
    for (const std::string& kernel : GetParam().kernels) EXPECT_EQ(mismatch(kernel + ulp(), checked), 0.0) << kernel;
  }
}

// The two places that give the compared numbers themselves, each of one side.
TEST_P(KernelFault, OneUlpInWhatIsComparedIsNoticed) {
  for (const char* where : {"sample", "sample@prefill", "sample@decode", "log_prob"})
    EXPECT_GT(mismatch(where, false), 0) << where;
  for (const char* where : {"sample", "log_prob", "log_prob@scoring"}) EXPECT_GT(mismatch(where, true), 0) << where;
  EXPECT_GT(mismatch("log_prob@training", false), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, KernelFault, testing::ValuesIn(kernel_cases()),
                         [](const auto& of) { return of.param.name(); });

}  // namespace
}  // namespace collimate::test

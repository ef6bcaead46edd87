#include <gtest/gtest.h>

#include "collimate/base/fault.h"
#include "collimate/rlhf/loss/list.h"
#include "tests/parity/small_rollout.h"

// Every kernel of forward takes one ulp from one number of each row that it writes, in one phase alone: the steps that
// run prompts, those that decode, the update, or the check pass before several updates. What a run compares must
// differ. The number is the row's largest: its ulp is not lost when the row is summed, and among logits it is the one
// that all log-probs of the row read. Samples are drawn at a temperature, so that logits are scaled.
namespace collimate::test {
namespace {

constexpr float kTemperature = 0.7F;

// While it lives a kernel is wrong: "kernel@phase" in one phase, "kernel" in all of them; "" for none.
class Nudged {
 public:
  explicit Nudged(const std::string& where) { base::nudge_for_tests(where); }
  ~Nudged() { base::nudge_for_tests(""); }
  Nudged(const Nudged&) = delete;
  Nudged& operator=(const Nudged&) = delete;
};

void write_small_gpt2(const fs::path& directory) {
  fs::create_directories(directory);
  write_text(directory / "config.json", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2",
    "vocab_size": 13, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 64, "n_positions": 32,
    "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": true, "eos_token_id": 1})");
}

struct Family {
  std::string name;
  std::vector<std::string> kernels;  // in the order in which forward runs them
};
const Family kLlama = {
    "llama", {"embedding", "rms_norm", "linear", "rope", "attention", "silu_mul", "scale_logits", "log_softmax"}};
const Family kGpt2 = {"gpt2",
                      {"embedding", "layer_norm", "linear", "attention", "gelu", "scale_logits", "log_softmax"}};

class KernelFault : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override { GetParam().name == "gpt2" ? write_small_gpt2(path()) : write_small_model(path()); }
  const fs::path& path() const { return scratch_.path(); }

  // The largest difference that an update finds, or the check pass, after a rollout by the same weights.
  double mismatch(const std::string& where, bool checked) {
    const Nudged nudged(where);
    SmallLearner small(path(), "lm", 30);
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

  Scratch scratch_{"kernel-fault"};
};

TEST_P(KernelFault, OneUlpInOnePhaseIsNoticed) {
  for (const std::string& kernel : GetParam().kernels) {
    for (const std::string phase : {"prefill", "decode", "training", "scoring"}) {
      const double moved = mismatch(kernel + "@" + phase, phase == "scoring");
      EXPECT_GT(moved, 0.0) << kernel << " in " << phase;
      EXPECT_LT(moved, 1e-4) << kernel << " in " << phase;
    }
  }
}

// What is wrong in the same way everywhere is no mismatch: the nudge itself does not depend on how rows are batched.
TEST_P(KernelFault, InNoneOrAllOfThemTheyAgree) {
  for (const bool checked : {false, true}) {
    EXPECT_EQ(mismatch("", checked), 0.0);
    for (const std::string& kernel : GetParam().kernels) EXPECT_EQ(mismatch(kernel, checked), 0.0) << kernel;
  }
}

// The two places that give the compared numbers themselves, each of one side.
TEST_P(KernelFault, OneUlpInWhatIsComparedIsNoticed) {
  for (const char* where : {"sample", "sample@prefill", "sample@decode", "log_prob"})
    EXPECT_GT(mismatch(where, false), 0) << where;
  for (const char* where : {"sample", "log_prob", "log_prob@scoring"}) EXPECT_GT(mismatch(where, true), 0) << where;
  EXPECT_GT(mismatch("log_prob@training", false), 0);
}

INSTANTIATE_TEST_SUITE_P(Families, KernelFault, testing::Values(kLlama, kGpt2),
                         [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace collimate::test

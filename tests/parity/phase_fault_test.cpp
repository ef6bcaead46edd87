#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "collimate/rlhf/loss/list.h"
#include "tests/parity/small_rollout.h"
#include "tests/support/model/edit_weights.h"

// A run compares the log-probs that its Service recorded with those that its Learner differentiates. One element of one
// weight, one ulp off in one phase alone, makes them differ: the steps that run prompts, those that decode, the update.
namespace collimate::test {
namespace {

enum class Phase { kPrefill, kDecode, kTraining };

constexpr int64_t kPromptTokens = 12;  // of all prompts

// An element of a weight that forward reads in place, one ulp larger while those phases work; no version says so.
class Fault {
 public:
  Fault(model::Weights& weights, int parameter, std::set<Phase> phases)
      : weights_(weights), parameter_(parameter), phases_(std::move(phases)) {}

  void during(Phase phase, const std::function<void()>& work) const {
    const float right = weights_.values(parameter_)[0];
    if (phases_.contains(phase)) model::testing::edit_of(weights_, parameter_)[0] = std::nextafter(right, 2 * right);
    work();
    model::testing::edit_of(weights_, parameter_)[0] = right;
  }

 private:
  model::Weights& weights_;
  int parameter_;
  std::set<Phase> phases_;
};

Batch generate_rows(SmallLearner& small, const Fault& fault) {
  generate::Service service(*small.model, rollout_options(small));
  service.submit(rollout_requests());
  fault.during(Phase::kPrefill, [&] { service.step(); });
  EXPECT_EQ(service.stats().prefill_tokens, kPromptTokens);
  EXPECT_EQ(service.stats().decoded_tokens, 0);
  fault.during(Phase::kDecode, [&] {
    while (service.step()) {
    }
  });
  EXPECT_EQ(service.stats().prefill_tokens, kPromptTokens);
  EXPECT_EQ(service.stats().decoded_tokens,
            static_cast<int64_t>(kRolloutPrompts.size()) * kRolloutSamples * (kRolloutTokens - 1));
  return rollout_rows(service.take());
}

class PhaseFault : public testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path()); }

  // The largest difference that a run finds with the fault in these phases.
  double mismatch_with_fault_in(const std::set<Phase>& phases) {
    SmallLearner small(scratch_.path(), "lm", 30);
    const int norm = small.weights->index_of("model.layers.0.input_layernorm.weight");
    const Fault fault(*small.weights, norm, phases);
    const Batch rows = generate_rows(small, fault);
    const batch::GlobalCounts counts = train::count_rows(rows);
    train::Mismatch found;
    fault.during(Phase::kTraining,
                 [&] { found = small.accumulate(rows, rlhf::make_loss("completions", "nll", {}), counts).mismatch; });
    EXPECT_EQ(found.tokens_compared, static_cast<int64_t>(counts.tokens));
    return found.log_prob_abs_max;
  }
  void expect_noticed_in(Phase phase) {
    const double moved = mismatch_with_fault_in({phase});
    EXPECT_GT(moved, 0.0);
    EXPECT_LT(moved, 1e-4);
  }

  Scratch scratch_{"phase-fault"};
};

TEST_F(PhaseFault, InNoneOrAllOfThemTheyAgree) {
  EXPECT_EQ(mismatch_with_fault_in({}), 0.0);
  EXPECT_EQ(mismatch_with_fault_in({Phase::kPrefill, Phase::kDecode, Phase::kTraining}), 0.0);
}

TEST_F(PhaseFault, InPrefill) { expect_noticed_in(Phase::kPrefill); }
TEST_F(PhaseFault, InDecode) { expect_noticed_in(Phase::kDecode); }
TEST_F(PhaseFault, InTraining) { expect_noticed_in(Phase::kTraining); }

}  // namespace
}  // namespace collimate::test

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "collimate/generate/service.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/rollout/assemble.h"
#include "tests/parity/small_learner.h"

// A run compares the log-probs that its Service recorded with those that its Learner differentiates. One element of one
// weight, one ulp off in one phase alone, makes them differ: the steps that run prompts, those that decode, the update.
namespace collimate::test {
namespace {

enum class Phase { kPrefill, kDecode, kTraining };

constexpr int64_t kSamples = 4;  // of each prompt
constexpr int64_t kDrawn = 8;    // tokens of each sample, the last of which is never run
const std::vector<std::vector<int32_t>> kPrompts = {{5, 3, 4, 12}, {2, 9, 8, 12}, {7, 7, 1, 12}};
constexpr int64_t kPromptTokens = 12;  // of all

// An element of a weight that forward reads in place, one ulp larger while those phases work; no version says so.
class Fault {
 public:
  Fault(float& value, std::set<Phase> phases) : value_(value), phases_(std::move(phases)) {}

  void during(Phase phase, const std::function<void()>& work) const {
    const float right = value_;
    if (phases_.contains(phase)) value_ = std::nextafter(right, 2 * right);
    work();
    value_ = right;
  }

 private:
  float& value_;
  std::set<Phase> phases_;
};

Batch requests() {
  std::vector<int64_t> uids(kPrompts.size() * kSamples), prompt_uids;
  std::iota(uids.begin(), uids.end(), 0);
  std::vector<std::vector<int32_t>> ids;
  for (const int64_t uid : uids) {
    prompt_uids.push_back(uid / kSamples);
    ids.push_back(kPrompts[static_cast<size_t>(uid / kSamples)]);
  }
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set(batch::kPromptUid, prompt_uids);
  rows.set_ragged(batch::kIds, ids);
  return rows;
}

Batch as_rows(std::span<const generate::Emission> emissions) {
  std::vector<rlhf::Completion> completions;
  for (const generate::Emission& e : emissions)
    completions.push_back({.uid = e.uid,
                           .prompt = kPrompts[static_cast<size_t>(e.uid / kSamples)],
                           .tokens = e.tokens,
                           .log_probs = e.log_probs,
                           .versions = e.versions,
                           .finish = static_cast<int32_t>(e.finish)});
  return rlhf::completion_rows(completions);
}

Batch generate_rows(SmallLearner& small, const Fault& fault) {
  generate::ServiceOptions options;
  options.exec = small.exec;
  options.sampling.max_tokens = kDrawn;
  options.sampling.ignore_eos = true;
  generate::Service service(*small.model, options);
  service.submit(requests());
  fault.during(Phase::kPrefill, [&] { service.step(); });
  EXPECT_EQ(service.stats().prefill_tokens, kPromptTokens);
  EXPECT_EQ(service.stats().decoded_tokens, 0);
  fault.during(Phase::kDecode, [&] {
    while (service.step()) {
    }
  });
  EXPECT_EQ(service.stats().prefill_tokens, kPromptTokens);
  EXPECT_EQ(service.stats().decoded_tokens, static_cast<int64_t>(kPrompts.size()) * kSamples * (kDrawn - 1));
  return as_rows(service.take());
}

class PhaseFault : public testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path()); }

  // The largest difference that a run finds with the fault in these phases.
  double mismatch_with_fault_in(const std::set<Phase>& phases) {
    SmallLearner small(scratch_.path(), "lm", 30);
    const int norm = small.weights->index_of("model.layers.0.input_layernorm.weight");
    const Fault fault(*small.weights->param(norm), phases);
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

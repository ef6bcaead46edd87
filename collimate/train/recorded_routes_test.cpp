// Updates over samples that tell which experts a mixture's routers chose when they were drawn.
#include <ATen/TensorOperators.h>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"
#include "collimate/train/learner.h"
#include "tests/support/model/altered_experts.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::train {
namespace {

using model::testing::tiny_shape;
using model::testing::tiny_weights;

constexpr size_t kPrompt = 20;
constexpr int64_t kSamples = 3, kTokens = 26;  // of a prompt; of a sample

class RecordedRoutesTest : public ::testing::Test {
 protected:
  RecordedRoutesTest() {
    std::vector<int64_t> uids, prompts;
    std::vector<std::vector<int32_t>> ids;
    for (int64_t r = 0; r < 2 * kSamples; ++r) {
      uids.push_back(r);
      prompts.push_back(r / kSamples);
      ids.emplace_back();
      for (int64_t t = 0; t < kTokens; ++t)
        ids.back().push_back(static_cast<int32_t>((t < 20 ? 7 * t * t + r / kSamples : 5 * t + 11 * r) % 37));
      experts_.push_back(chosen(ids.back()));
    }
    std::vector<uint8_t> trainable(kTokens, 1);
    std::fill_n(trainable.begin(), kPrompt, 0);
    rows_.set(batch::kUid, uids);
    rows_.set(batch::kPromptUid, prompts);
    rows_.set_ragged(batch::kIds, ids);
    rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(ids.size(), trainable));
    set_experts();
    set_version(model_.weights().version());
    const Batch with = with_log_probs(model_, rows_, batch::kLogProbs, {});
    rows_ = with;
  }

  // As generation records them: none of the last token.
  model::RoutedExperts chosen(const std::vector<int32_t>& ids) {
    model::KvCache cache(model_.shape(), tensor::KvType::kFloat32, 2);
    const std::vector<int32_t> table = {0, 1};
    model::RoutedExperts experts;
    model_.forward_cached(model::testing::pack({ids}), cache, {&table, 1}, &experts);
    std::fill_n(experts.end() - width_, width_, -1);
    return experts;
  }
  void set_experts() { rows_.set_ragged(batch::routed_experts(width_), experts_); }
  void set_version(uint64_t version) {
    const std::vector<int64_t> row(kTokens, static_cast<int64_t>(version));
    rows_.set_ragged(batch::kWeightsVersion, std::vector<std::vector<int64_t>>(2 * kSamples, row));
  }
  Learner learner(RecordedRoutes routes, model::Recompute recompute = model::Recompute::kNone,
                  int64_t micro_batch_tokens = 2048) {
    return Learner(model_, {.micro_batch_tokens = micro_batch_tokens, .recompute = recompute, .routes = routes}, {});
  }
  // An update's gradients, and what it reports.
  std::vector<float> gradients(Learner learner, UpdateReport& report) {
    weights_->zero_gradients();
    const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                         const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
    report = learner.accumulate(rows_, {{}, loss}, count_rows(rows_));
    return model::testing::all_gradients(*weights_);
  }

  std::shared_ptr<model::Weights> weights_ = tiny_weights(tiny_shape("mixtral"));
  model::Model model_{weights_, {}};
  const int64_t width_ = model::routed_width(model_.shape());
  std::vector<model::RoutedExperts> experts_;
  Batch rows_;
};

// Two routers. A prompt is packed once, or in a micro-batch of its own row each time; the last tokens have none.
constexpr int64_t kShared = 2 * (2 * 20 + 6 * 5), kApart = 2 * 6 * 25;

TEST_F(RecordedRoutesTest, OwnOnesChangeNoBitAndNoneDiffer) {
  for (const auto recompute : {model::Recompute::kNone, model::Recompute::kFull})
    for (const int64_t tokens : {2048, 1}) {
      UpdateReport report;
      const std::vector<float> want = gradients(learner(RecordedRoutes::kIgnored, recompute, tokens), report);
      EXPECT_EQ(report.mismatch.routes.compared, 0);
      for (const RecordedRoutes routes : {RecordedRoutes::kCompared, RecordedRoutes::kReplayed}) {
        EXPECT_EQ(gradients(learner(routes, recompute, tokens), report), want);
        EXPECT_EQ(report.mismatch.log_prob_abs_max, 0);
        EXPECT_EQ(report.mismatch.routes.compared,
                  (tokens == 1 ? kApart : kShared) * (recompute == model::Recompute::kFull ? 2 : 1));
        EXPECT_EQ(report.mismatch.routes.differing, 0);
      }
    }
}

TEST_F(RecordedRoutesTest, OthersAreCountedAndTrainedThroughWhereTheyAreReplayed) {
  model::testing::alter_experts(experts_[4], model_.shape(), kTokens - 1);
  set_experts();
  UpdateReport report;
  const std::vector<float> own = gradients(learner(RecordedRoutes::kIgnored), report);
  EXPECT_EQ(gradients(learner(RecordedRoutes::kCompared), report), own);
  EXPECT_EQ(report.mismatch.routes.differing, 1);
  EXPECT_EQ(learner(RecordedRoutes::kCompared).check(rows_).routes.differing, 1);
  EXPECT_EQ(report.mismatch.log_prob_abs_max, 0);
  EXPECT_NE(gradients(learner(RecordedRoutes::kReplayed), report), own);
  EXPECT_EQ(report.mismatch.routes.differing, 1);
  EXPECT_GT(report.mismatch.log_prob_abs_max, 0) << "against log-probs without replay";
  EXPECT_EQ(report.mismatch.tokens_compared, 6 * 6);
  // Training replays what scoring replayed.
  rows_ = with_log_probs(model_, rows_, batch::kOldLogProbs, {.routes = RecordedRoutes::kReplayed});
  gradients(learner(RecordedRoutes::kReplayed), report);
  EXPECT_EQ(report.mismatch.log_prob_abs_max, 0);
}

TEST_F(RecordedRoutesTest, OfOtherWeightsAreNotCounted) {
  set_version(model_.weights().version() + 1);
  UpdateReport report;
  gradients(learner(RecordedRoutes::kCompared), report);
  EXPECT_EQ(report.mismatch.routes.compared, 0);
  EXPECT_EQ(learner(RecordedRoutes::kCompared).check(rows_).routes.compared, 0);
}

}  // namespace
}  // namespace collimate::train

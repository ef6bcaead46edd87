#include <gtest/gtest.h>

#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/rlhf/modules/trainer.h"
#include "collimate/train/micro_batch.h"
#include "collimate/train/scoring.h"
#include "tests/parity/small_learner.h"

// An iteration's training is one call of the flow and lasts as long as it lasts: run.deadline_seconds is renewed from
// inside.
namespace collimate::test {
namespace {

constexpr int64_t kMicroBatchTokens = 30;

class Progress : public testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path()); }

  // How often `work` was said to go on.
  int64_t told_by(const std::function<void()>& work) {
    told_ = 0;
    work();
    return told_;
  }

  Scratch scratch_{"progress"};
  const Batch rows_ = training_rows(12);
  const int64_t micro_batches_ = static_cast<int64_t>(
      train::split_rows(rows_.gather(train::row_order(rows_)), kMicroBatchTokens, /*rows_per_unit=*/1).size());
  int64_t told_ = 0;
  std::function<void()> tell_ = [this] { ++told_; };
};

TEST_F(Progress, IsToldAfterEveryMicroBatch) {
  ASSERT_GT(micro_batches_, 3);
  SmallLearner small(scratch_.path(), "lm", kMicroBatchTokens);
  const rlhf::Loss loss = rlhf::make_loss("completions", "nll", {});
  train::LearnerOptions options;
  options.micro_batch_tokens = kMicroBatchTokens;
  options.progress = tell_;
  train::Learner learner(*small.model, options, small.exec);
  EXPECT_EQ(told_by([&] { learner.update(rows_, rlhf::objective_of(loss)); }), micro_batches_);
  EXPECT_EQ(told_by([&] { learner.check(rows_); }), micro_batches_);
  const train::ScoringOptions scoring{.micro_batch_tokens = kMicroBatchTokens, .progress = tell_};
  EXPECT_EQ(told_by([&] { train::with_log_probs(*small.model, rows_, batch::kOldLogProbs, scoring); }), micro_batches_);
}

TEST_F(Progress, OfATrainedModelReachesItsWorker) {
  rlhf::TrainerModule trainer({{"path", scratch_.path().string()},
                               {"from_scratch", true},
                               {"weights", "policy"},
                               {"trained", true},
                               {"loss_rows", "completions"},
                               {"default_loss", "nll"}});
  host::CorePool pool(1);
  flow::SharedObjects objects;
  flow::SharedStore store;
  flow::Context context{.config = {{"train", {{"micro_batch_tokens", kMicroBatchTokens}}}},
                        .pool = &pool,
                        .store = &store,
                        .objects = &objects};
  context.progress = tell_;
  trainer.setup(context);
  EXPECT_EQ(told_by([&] { trainer.call("log_probs", rows_, {}); }), micro_batches_);
  const std::vector<Batch> updates = {rows_, rows_};
  EXPECT_EQ(told_by([&] { trainer.train_step("train", updates, {}); }), 2 * micro_batches_);
}

}  // namespace
}  // namespace collimate::test

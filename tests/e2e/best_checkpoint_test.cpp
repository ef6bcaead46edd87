#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/base/metrics.h"
#include "collimate/flow/checkpoints.h"
#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"

// run.best_metric keeps the best checkpoint beside the newest ones, and a run leaves its model.
namespace collimate::test {
namespace {

class BestCheckpoint : public testing::Test {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }

  // The rate is so high that val/loss rises again.
  recipe::TrainOutcome train(const std::string& name, std::vector<std::string> more,
                             const std::string& resume = "auto") {
    std::vector<std::string> sets = {"data.eval=" + (scratch_ / "demonstrations.jsonl"),
                                     "run.iterations=3",
                                     "run.save_every=1",
                                     "run.evaluate_every=1",
                                     "run.keep_checkpoints=1",
                                     "train.learning_rate=0.1"};
    sets.insert(sets.end(), more.begin(), more.end());
    recipe::TrainCall call;
    call.resume = resume;
    return train_text(small_config("sft", scratch_.path()), scratch_ / name, sets, call);
  }
  std::string model(const std::string& name) const { return read_text(scratch_ / name + "/model/model.safetensors"); }
  // Iterations after which the loss is lowest.
  int64_t lowest(const std::string& name) const {
    int64_t best = 0;
    double loss = std::numeric_limits<double>::infinity();
    for (const base::MetricsRecord& record : base::read_metrics(scratch_ / name + "/metrics.jsonl"))
      if (const double* value = record.find("val/loss"); record.step > 0 && *value < loss) {
        best = record.step;
        loss = *value;
      }
    return best;
  }

  Scratch scratch_{"best-checkpoint"};
};

TEST_F(BestCheckpoint, IsKeptAndExported) {
  const recipe::TrainOutcome outcome = train("run", {"run.best_metric=val/loss"});
  const int64_t best = lowest("run");
  ASSERT_LT(best, 3) << "the loss falls to the end: nothing is shown";
  EXPECT_EQ(outcome.summary.at("model_step"), best);
  std::vector<int64_t> kept;
  for (const std::string& path : flow::Checkpoints(scratch_ / "run").list())
    kept.push_back(std::stoll(path.substr(path.rfind('-') + 1)));
  EXPECT_THAT(kept, testing::ElementsAre(best, 3));

  const std::string checkpoint = fmt::format("{}/checkpoints/step-{:06}", scratch_ / "run", best);
  const recipe::TrainOutcome until = train("until", {fmt::format("run.iterations={}", best)}, checkpoint);
  EXPECT_TRUE(model("run") == model("until")) << "not the model of step " << best;
  EXPECT_EQ(outcome.summary.at("model_hash"), until.summary.at("model_hash"));
  EXPECT_EQ(train("last", {}).summary.at("model_step"), 3);
  EXPECT_FALSE(model("run") == model("last"));
}

// A model that is gone is exported again, and another choice exports another one: neither trains.
TEST_F(BestCheckpoint, IsExportedAgain) {
  train("run", {"run.best_metric=val/loss"});
  const std::string before = model("run");
  fs::remove_all(scratch_ / "run" + "/model");
  train("run", {"run.best_metric=val/loss"});
  EXPECT_TRUE(model("run") == before);
  EXPECT_EQ(train("run", {}).summary.at("model_step"), 3);
  EXPECT_FALSE(model("run") == before);
}

// Patience ends the run ahead of its first regular checkpoint: the last state, which was not measured, is left.
TEST_F(BestCheckpoint, ARunThatWasStoppedEarlierLeavesItsLastModel) {
  const std::vector<std::string> sets = {"run.iterations=20", "run.save_every=10", "run.patience=1",
                                         "train.learning_rate=1", "run.best_metric=val/loss"};
  const recipe::TrainOutcome outcome = train("run", sets);
  EXPECT_LT(outcome.iterations, 10);
  EXPECT_EQ(outcome.summary.at("model_step"), outcome.iterations);
  EXPECT_FALSE(model("run").empty());
}

TEST_F(BestCheckpoint, AMetricThatIsNotMeasuredEndsTheRunAtItsStart) {
  EXPECT_THAT(base::message_of([&] { train("run", {"run.best_metric=val/accuracy"}); }),
              testing::HasSubstr("[run.best_metric] expected a metric of this run: val/loss"));
  EXPECT_THAT(base::message_of([&] {
                train("run", {"run.best_metric=val/loss", "run.evaluate_every=2"});
              }),
              testing::HasSubstr("[run.best_metric] expected run.save_every to be a multiple of run.evaluate_every"));
}

}  // namespace
}  // namespace collimate::test

#include "collimate/recipe/best_metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "collimate/host/file_io.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/metrics_record.h"

namespace collimate::recipe {
namespace {

using base::record_of;

Config config_with(const std::string& metric, int64_t save_every = 4, int64_t evaluate_every = 2) {
  Config config;
  config.run.best_metric = metric;
  config.run.save_every = save_every;
  config.run.evaluate_every = evaluate_every;
  return config;
}

TEST(BestMetric, HigherIsBetterWhicheverWayTheMetricGoes) {
  for (const auto& [metric, sign] : std::vector<std::pair<std::string, double>>{{"val/accuracy", 1},
                                                                                {"val/loss", -1},
                                                                                {"val/exam/acc", 1},
                                                                                {"val/pass@4", 1},
                                                                                {"val/hard/maj@8", 1},
                                                                                {"val/perplexity", -1},
                                                                                {"val/divergence", -1}}) {
    BestMetric best(config_with(metric), "no-such-file");
    best.add(record_of(0, {{metric, 2.0}}));
    best.add(record_of(1, {{"critic/rewards/mean", 9.0}}));  // without an evaluation
    best.add(record_of(2, {{metric, 3.0}}));
    best.add(record_of(4, {{metric, std::nan("")}}));
    EXPECT_EQ(best.value(0), sign * 2.0);
    EXPECT_EQ(best.value(2), sign * 3.0);
    for (const int64_t step : {1, 3, 4}) EXPECT_FALSE(best.value(step).has_value()) << step;
  }
  EXPECT_FALSE(BestMetric(Config(), "no-such-file").asked());
}

// A run that goes on has the lines of the one before, under verl's or TRL's names.
TEST(BestMetric, TakesWhatTheRunHasRecorded) {
  const std::string path = testing::TempDir() + "collimate-best-" + std::to_string(getpid());
  std::filesystem::remove(path);
  base::MetricsWriter(path, -1).append(record_of(5, {{"critic/rewards/mean", 0.5}}));
  base::MetricsWriter(path, 5).append(record_of(6, {{"reward", 0.75}}));
  const BestMetric best(config_with("critic/rewards/mean"), path);
  EXPECT_EQ(best.value(5), 0.5);
  EXPECT_EQ(best.value(6), 0.75);
}

TEST(BestMetric, AMetricThatTheRunDoesNotHaveIsNamedWithThoseItHas) {
  BestMetric held_out(config_with("val/accuracy"), "no-such-file");
  held_out.add(record_of(1, {{"critic/rewards/mean", 1.0}}));
  EXPECT_EQ(base::message_of([&] {
              held_out.add(record_of(0, {{"val/loss", 1.0}, {"val/exam/acc", 0.5}, {"val/n", 3}}));
            }),
            "[run.best_metric] expected a metric of this run: val/loss, val/exam/acc, got val/accuracy");
  BestMetric seen(config_with("val/accuracy"), "no-such-file");
  seen.add(record_of(0, {{"val/reward/errors", 8}}));  // all samples were dropped
  seen.add(record_of(2, {{"val/accuracy", 0.5}}));
  seen.add(record_of(4, {{"val/reward/errors", 8}, {"val/exam/acc", 0.5}}));
  EXPECT_EQ(seen.value(2), 0.5);
  EXPECT_FALSE(seen.value(4).has_value());
  BestMetric reward(config_with("critic/rewards/mean"), "no-such-file");
  reward.add(record_of(0, {{"val/loss", 1.0}}));
  EXPECT_THAT(base::message_of([&] {
                reward.add(record_of(1, {{"actor/loss", 1.0}}));
              }),
              testing::HasSubstr("got critic/rewards/mean"));
}

TEST(BestMetric, WhatCannotTellABestOneIsRefusedBeforeTheRun) {
  EXPECT_EQ(best_metric_problem(Config(), false), "");
  EXPECT_EQ(best_metric_problem(config_with("val/accuracy"), true), "");
  EXPECT_EQ(best_metric_problem(config_with("critic/rewards/mean", 3, 2), false), "");
  using testing::HasSubstr;
  EXPECT_THAT(best_metric_problem(config_with("actor/entropy"), true),
              HasSubstr("expected a metric of which the best value means something, got actor/entropy; try val/acc"));
  EXPECT_THAT(best_metric_problem(config_with("val/loss"), false), HasSubstr("got none; try data.eval"));
  EXPECT_THAT(best_metric_problem(config_with("val/loss", 4, 0), true), HasSubstr("try run.evaluate_every: 4"));
  EXPECT_THAT(best_metric_problem(config_with("val/loss", 4, 3), true), HasSubstr("run.save_every to be a multiple"));
  EXPECT_THAT(best_metric_problem(config_with("val/loss", 0), true), HasSubstr("try run.save_every: 50"));
}

}  // namespace
}  // namespace collimate::recipe

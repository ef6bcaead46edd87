#include "collimate/recipe/run_totals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/base/metrics_record.h"

namespace collimate::recipe {
namespace {

using base::record_of;

TEST(RunTotals, SumsTimesAndTokensAndKeepsTheBest) {
  RunTotals totals;
  totals.add(record_of(0, {{"val/accuracy", 0.25}, {"val/loss", 2.0}, {"timing_s/testing", 1.0}}));
  totals.add(record_of(1, {{"perf/total_num_tokens", 100}, {"train/tokens", 7}, {"timing_s/step", 2.0}}));
  totals = nlohmann::json::parse(nlohmann::json(totals).dump()).get<RunTotals>();
  totals.add(record_of(2, {{"perf/total_num_tokens", 300}, {"timing_s/step", 6.0}, {"val/accuracy", 0.75}}));
  totals.add(record_of(3, {{"val/accuracy", std::nan("")}, {"val/loss", 1.5}, {"actor/lr", 9.0}}));
  totals.add(record_of(4, {{"val/accuracy", 0.75}, {"val/loss", 1.75}, {"val/exam/acc", 0.5}, {"val/exam/length", 9}}));
  const nlohmann::json summary = totals.summary();
  EXPECT_EQ(summary.at("tokens"), 400.0);
  EXPECT_EQ(summary.at("tokens_per_second"), 50.0);
  EXPECT_EQ(summary.at("phase_seconds"), (nlohmann::json{{"step", 8.0}, {"testing", 1.0}}));
  EXPECT_EQ(summary.at("best_metrics"), (nlohmann::json{{"val/accuracy", {{"step", 2}, {"value", 0.75}}},
                                                        {"val/loss", {{"step", 3}, {"value", 1.5}}},
                                                        {"val/exam/acc", {{"step", 4}, {"value", 0.5}}}}));
}

TEST(RunTotals, WithoutSamplesTheTrainedTokensCount) {
  RunTotals totals;
  EXPECT_EQ(totals.summary().at("tokens_per_second"), 0.0);
  totals.add(record_of(1, {{"train/tokens", 30}, {"timing_s/step", 0.5}}));
  EXPECT_EQ(totals.summary().at("tokens_per_second"), 60.0);
}

}  // namespace
}  // namespace collimate::recipe

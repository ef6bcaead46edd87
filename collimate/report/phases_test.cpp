#include "collimate/report/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::report {
namespace {

RunData run_of_steps(int last) {
  RunData run;
  run.first_step = 1;
  run.last_step = last;
  for (int step = 1; step <= last; ++step) {
    for (const auto& [name, seconds] : {std::pair("timing_s/step", 2.0), std::pair("timing_s/gen", 1.5)}) {
      run.metrics[name].x.push_back(step);
      run.metrics[name].y.push_back(seconds);
    }
  }
  return run;
}

TEST(PhaseTable, AddsWhatStepsSpentElsewhere) {
  const PhaseTable table = phase_table(run_of_steps(120));
  EXPECT_EQ(table.bar_starts.size(), 60u);
  ASSERT_EQ(table.phases.size(), 2u);
  EXPECT_EQ(table.phases[0].name, "generating completions");
  EXPECT_DOUBLE_EQ(table.phases[0].total, 180);
  EXPECT_DOUBLE_EQ(table.phases[0].per_bar[59], 1.5);
  EXPECT_EQ(table.phases[1].name, "the rest of each iteration");
  EXPECT_DOUBLE_EQ(table.phases[1].total, 60);
}

TEST(PhaseTable, ALastBarOfFewerStepsHasTheirMean) {
  const PhaseTable table = phase_table(run_of_steps(61));
  ASSERT_EQ(table.bar_starts.size(), 31u);
  ASSERT_EQ(table.phases.size(), 2u);
  EXPECT_THAT(table.phases[0].per_bar, testing::Each(testing::DoubleEq(1.5)));
  EXPECT_THAT(table.phases[1].per_bar, testing::Each(testing::DoubleEq(0.5)));
}

}  // namespace
}  // namespace collimate::report

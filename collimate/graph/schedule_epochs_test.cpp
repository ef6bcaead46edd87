#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "collimate/graph/forms.h"
#include "collimate/graph/schedule.h"
#include "tests/support/base/error_of.h"
#include "tests/support/graph/sample_graphs.h"

namespace collimate::graph {
namespace {

TEST(ScheduleEpochs, EveryLastIterationHasItsOwnRows) {
  const ScheduleOptions options{.rows = 8, .epoch_iterations = 3, .last_rows = 2};
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 7; ++i) rows.push_back(options.rows_in(i));
  EXPECT_EQ(rows, (std::vector<int64_t>{8, 8, 2, 8, 8, 2, 8}));
  EXPECT_EQ(ScheduleOptions({.rows = 8, .last_rows = 2}).rows_in(2), 8) << "without epochs all are equal";
  EXPECT_EQ(ScheduleOptions({.rows = 8, .epoch_iterations = 1, .last_rows = 2}).rows_in(0), 2);
}

TEST(ScheduleEpochs, RowsThatCanNotBeAreRefused) {
  const Graph graph = samples::grpo();
  const auto error = [&](int64_t iterations, int64_t rows) {
    return base::message_of([&] {
      Schedule(graph, flattening(graph, 1),
               {.rows = 4, .group_size = 2, .epoch_iterations = iterations, .last_rows = rows});
    });
  };
  EXPECT_EQ(error(2, 2), "");
  EXPECT_EQ(error(2, 6), "[schedule.last_rows] expected 1 to the 4 of the other iterations, got 6");
  EXPECT_EQ(error(2, 0), "[schedule.last_rows] expected 1 to the 4 of the other iterations, got 0");
  EXPECT_EQ(error(2, 3), "[schedule.last_rows] expected a multiple of group_size 2, got 3");
  EXPECT_EQ(error(-1, 2), "[schedule.epoch_iterations] expected 0 or more, got -1");
}

}  // namespace
}  // namespace collimate::graph

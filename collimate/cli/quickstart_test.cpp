#include "collimate/cli/quickstart.h"

#include <gtest/gtest.h>

namespace collimate::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(QuickstartBounds, GrpoRisesAndEndsHigh) {
  EXPECT_EQ(missed_bounds({55, 80, 0}), Lines());
  EXPECT_EQ(missed_bounds({45, 70, 0}), Lines());
  EXPECT_EQ(missed_bounds({56, 80, 0}), Lines{"expected a rise by at least 25 points, got 24.0"});
  EXPECT_EQ(missed_bounds({30, 69, 0}), Lines{"expected a held-out accuracy of at least 70 %, got 69.0"});
  EXPECT_EQ(missed_bounds({60, 60, 0}).size(), 2U);
}

TEST(QuickstartBounds, ControlsStayAndSftEndsBelow) {
  EXPECT_EQ(missed_bounds({50, 80, 0}, {50, 53, 0}, {50, 50, 0}, {50, 70, 0}), Lines());
  EXPECT_EQ(missed_bounds({50, 80, 0}, {50, 46, 0}, {50, 54, 0}, {50, 71, 0}),
            (Lines{"expected rewards shuffled to move by at most 3 points, got -4.0",
                   "expected learning rate 0 to move by at most 3 points, got 4.0",
                   "expected SFT continued to end at least 10 points below GRPO, got 9.0"}));
}

}  // namespace
}  // namespace collimate::cli

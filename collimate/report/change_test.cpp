#include "collimate/report/change.h"

#include <gtest/gtest.h>

#include <cmath>

namespace collimate::report {
namespace {

std::vector<double> losses(int count, double (*at)(double share)) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) values.push_back(at(static_cast<double>(i) / count));
  return values;
}

TEST(Change, ALossThatStillFallsWantsMoreTraining) {
  const auto slow = [](double share) { return 4.2 - 1.6 * share; };
  EXPECT_TRUE(still_falls(losses(25, slow)));
  EXPECT_FALSE(still_falls(losses(8, slow))) << "too few to say";
  EXPECT_FALSE(still_falls(losses(60, [](double share) { return 2.4 * std::exp(-4 * share); }))) << "it has learned";
  EXPECT_FALSE(still_falls(losses(60, [](double share) { return 3 + std::exp(-9 * share); }))) << "it has levelled off";
  EXPECT_FALSE(still_falls(losses(60, [](double share) { return 3 + share; })));
  EXPECT_FALSE(still_falls({}));
}

TEST(Change, RewardsThatDoNotRiseAreToldFromTenOn) {
  EXPECT_TRUE(has_not_risen(std::vector<double>(10, 0.25)));
  EXPECT_FALSE(has_not_risen(std::vector<double>(9, 0.25)));
  EXPECT_FALSE(has_not_risen(losses(20, [](double share) { return share; })));
}

}  // namespace
}  // namespace collimate::report

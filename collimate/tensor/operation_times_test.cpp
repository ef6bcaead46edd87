#include "collimate/tensor/operation_times.h"

#include <gtest/gtest.h>

#include <optional>

#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

const Exec kCpu{.device = &cpu_device()};

void add_once() {
  const float x[] = {1, 2};
  float y[] = {3, 4};
  add(kCpu, x, 2, y);
  EXPECT_EQ(y[1], 6);
}

TEST(OperationTimes, AreOfThisThreadWhileTheObjectLives) {
  add_once();
  EXPECT_EQ(OperationTimes::current(), nullptr);
  std::optional<OperationTimes> times(std::in_place);
  EXPECT_TRUE(times->take().empty());
  add_once();
  add_once();
  float zeros[2];
  zero(kCpu, 2, zeros);
  const std::vector<OperationTime> called = times->take();
  ASSERT_EQ(called.size(), 2U);
  EXPECT_EQ(called[0].name, "zero");
  EXPECT_EQ(called[0].calls, 1);
  EXPECT_EQ(called[1].name, "add");
  EXPECT_EQ(called[1].calls, 2);
  EXPECT_GT(called[1].total_seconds, 0);
  EXPECT_TRUE(times->take().empty());
  times.reset();
  add_once();
  EXPECT_EQ(OperationTimes::current(), nullptr);
}

TEST(OperationTimes, SelfIsWithoutTheOperationsThatWereCalled) {
  OperationTimes times;
  {
    const OperationTimer outer(0);
    { const OperationTimer inner(1); }
    { const OperationTimer inner(1); }
  }
  const std::vector<OperationTime> called = times.take();
  ASSERT_EQ(called.size(), 2U);
  EXPECT_EQ(called[1].calls, 2);
  EXPECT_EQ(called[1].self_seconds, called[1].total_seconds);
  EXPECT_NEAR(called[0].self_seconds, called[0].total_seconds - called[1].total_seconds, 1e-9);
}

}  // namespace
}  // namespace collimate::tensor

#include "collimate/train/lr_schedule.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/base/error.h"
#include "tests/support/shared_data.h"

namespace collimate::train {
namespace {

void expect_rates(const LrSchedule& schedule, const std::vector<double>& expected) {
  for (size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(learning_rate(schedule, static_cast<int64_t>(step)), expected[step], 1e-12)
        << schedule.name << " at step " << step;
}

// Rates by hand are these: the warm-up is step ÷ warmup, then with p = (step − warmup) ÷ (total − warmup) the shapes
// are 1, 1 − p, (1 + cos πp) ÷ 2, and m + (1 − m)·(1 + cos πp) ÷ 2. cos(π/3) = 1/2, cos(2π/3) = −1/2.
TEST(LrSchedule, ShapesByHand) {
  expect_rates({.name = "constant", .peak = 0.5}, {0.5, 0.5, 0.5});
  expect_rates({.name = "constant", .peak = 0.5, .warmup = 4}, {0, 0.125, 0.25, 0.375, 0.5, 0.5, 0.5});
  expect_rates({.name = "linear", .peak = 1, .warmup = 2, .total = 6}, {0, 0.5, 1, 0.75, 0.5, 0.25, 0, 0});
  expect_rates({.name = "linear", .peak = 2, .total = 4}, {2, 1.5, 1, 0.5, 0});
  expect_rates({.name = "cosine", .peak = 1, .warmup = 1, .total = 4}, {0, 1, 0.75, 0.25, 0, 0});
  expect_rates({.name = "cosine_with_min", .peak = 1, .warmup = 1, .total = 4, .minimum_ratio = 0.2},
               {0, 1, 0.8, 0.4, 0.2, 0.2});
  expect_rates({.name = "cosine_with_min", .peak = 3, .total = 2, .minimum_ratio = 0.5}, {3, 2.25, 1.5, 1.5});
}

TEST(LrSchedule, WhatCannotBeFollowedIsRefused) {
  EXPECT_THROW(learning_rate({.name = "polynomial", .total = 9}, 0), base::InputError);
  EXPECT_THROW(learning_rate({.name = "linear", .warmup = 3, .total = 3}, 3), base::InputError);
  EXPECT_NO_THROW(learning_rate({.name = "constant", .warmup = 3, .total = 2}, 3));
}

// TRL's runs: the rate that each recorded step used follows from the run's options.
TEST(LrSchedule, GoldensRates) {
  const std::string directory = test::shared_path("goldens");
  if (directory.empty()) GTEST_SKIP() << "no goldens beside the repository";
  int runs = 0, shaped = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (file.path().extension() != ".json") continue;
    std::ifstream stream(file.path());
    const auto golden = nlohmann::json::parse(stream);
    if (!golden.contains("hyper") || !golden.at("hyper").contains("lr_scheduler_type") || !golden.contains("steps"))
      continue;
    const nlohmann::json& hyper = golden.at("hyper");
    const LrSchedule schedule{hyper.at("lr_scheduler_type"), hyper.at("learning_rate"), hyper.at("warmup_steps"),
                              hyper.at("max_steps")};
    int64_t step = 0;
    for (const nlohmann::json& recorded : golden.at("steps")) {
      const double expected = recorded.at("lr");
      EXPECT_NEAR(learning_rate(schedule, step), expected, 1e-8 * schedule.peak) << file.path() << " step " << step;
      ++step;
    }
    EXPECT_EQ(step, schedule.total) << file.path();
    ++runs;
    shaped += schedule.name != "constant" ? 1 : 0;
  }
  EXPECT_GT(runs, 0);
  EXPECT_GT(shaped, 0) << "no golden with a schedule other than constant";
}

}  // namespace
}  // namespace collimate::train

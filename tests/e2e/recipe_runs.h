#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/e2e/run_support.h"

// Runs of recipes on the small task, and what their metrics say.
namespace collimate::test {

inline double number(const nlohmann::json& line, const std::string& name) {
  const auto found = line.find(name);
  EXPECT_NE(found, line.end()) << "no " << name << " in " << line.dump();
  return found != line.end() && found->is_number() ? found->get<double>() : std::nan("");
}

inline void expect_every_step_once(const Metrics& metrics, int64_t first, int64_t last) {
  ASSERT_EQ(static_cast<int64_t>(metrics.size()), last - first + 1);
  for (size_t i = 0; i < metrics.size(); ++i) EXPECT_EQ(metrics[i].at("step"), first + static_cast<int64_t>(i));
}

inline void expect_finite(const Metrics& metrics) {
  for (const nlohmann::json& line : metrics)
    for (const auto& [name, value] : line.items()) {
      EXPECT_TRUE(value.is_number() && std::isfinite(value.get<double>())) << name << " is " << value.dump();
    }
}

// Tokens that the iteration's samples gave to train on.
inline double completion_tokens(const nlohmann::json& line) { return 16 * number(line, "response_length/mean"); }

// Every token of the line's completions was compared, with the weights that drew it, and none differs.
inline void expect_no_mismatch(const nlohmann::json& line) {
  EXPECT_EQ(number(line, "mismatch/logprob_abs_max"), 0.0);
  EXPECT_EQ(number(line, "mismatch/tokens_other_version"), 0.0);
  EXPECT_NEAR(number(line, "mismatch/tokens_compared"), completion_tokens(line), 1e-6);
}

// Trains in directories of its own.
class RecipeRuns : public testing::Test {
 protected:
  explicit RecipeRuns(const std::string& name) : scratch_(name) {}
  void SetUp() override { write_small_task(scratch_.path()); }

  Metrics train(const std::string& recipe, const std::vector<std::string>& sets = {}) {
    output_ = scratch_ / fmt::format("{}-{}", recipe, ++runs_);
    train_text(small_config(recipe, scratch_.path()), output_, sets);
    Metrics metrics = metrics_of(output_);
    expect_finite(metrics);
    return metrics;
  }
  void expect_loss_falls(const Metrics& metrics) {
    EXPECT_LT(number(metrics.back(), "actor/loss"), number(metrics.front(), "actor/loss"));
  }

  Scratch scratch_;
  std::string output_;
  int runs_ = 0;
};

}  // namespace collimate::test

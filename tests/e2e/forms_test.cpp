#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/e2e/wall_runs.h"

// Recipes whose completions have to be something.
namespace collimate::test {
namespace {

class Forms : public Walls {};

// The expression matches what is drawn; the model's own log-probs are trained, which scoring repeats.
TEST_F(Forms, RolloutsMatchTheRegexWithoutMismatch) {
  for (const std::string recipe : {"grpo", "ppo"}) {
    train(recipe, recipe, {"rollout.regex=\"[0-9]{1,2}(?:=[5-9])?\"", "rollout.top_k=9"});
    const std::regex form("[0-9]{1,2}(=[5-9])?");
    int ended = 0;
    for (const std::string& line : lines_of(directory(recipe) + "/samples/step-000003.jsonl")) {
      const auto sample = nlohmann::json::parse(line);
      const bool stopped = sample.at("finish") == "stop";
      ended += stopped;
      EXPECT_TRUE(!stopped || std::regex_match(sample.at("completion").get<std::string>(), form)) << line;
    }
    EXPECT_GT(ended, 4);
    for (const nlohmann::json& metrics : metrics_of(directory(recipe)))
      EXPECT_EQ(metrics.value("mismatch/logprob_abs_max", 0.0), 0.0);
  }
}

}  // namespace
}  // namespace collimate::test

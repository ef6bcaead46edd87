#include <gtest/gtest.h>

#include "collimate/base/deadline.h"
#include "collimate/rlhf/reward/functions.h"
#include "collimate/rlhf/reward/rules.h"
#include "tests/e2e/run_support.h"
#include "tests/support/host/run_command.h"

namespace collimate::test {
namespace {

// A reward written in C++, named by a config, trains a policy in process.
TEST(CppReward, TrainsByItsName) {
  const Scratch scratch("cpp-reward");
  write_small_task(scratch.path());
  int64_t asked = 0;
  rlhf::register_reward("starts_low", [&](const nlohmann::json& entry) {
    return rlhf::function_reward([&asked, limit = entry.value("limit", 52)](const rlhf::RewardSample& sample) {
      ++asked;
      return !sample.completion.empty() && sample.completion[0] <= limit ? 1.0 : 0.0;
    });
  });
  train_text(small_config("grpo", scratch.path()), scratch / "rule");
  train_text(small_config("grpo", scratch.path()), scratch / "function", {"reward=[{function: starts_low}]"});
  EXPECT_EQ(asked, 3 * 16);  // every sample once
  EXPECT_EQ(model_bytes(scratch / "function"), model_bytes(scratch / "rule")) << "the same reward as the rule's";
  train_text(small_config("grpo", scratch.path()), scratch / "low", {"reward=[{function: starts_low, limit: 49}]"});
  EXPECT_NE(model_bytes(scratch / "low"), model_bytes(scratch / "rule"));
}

// The program of examples/reward.cpp.
TEST(CppReward, TheExampleRuns) {
  const Scratch scratch("cpp-reward-example");
  write_small_task(scratch.path());
  write_text(scratch / "run.yaml", small_config("grpo", scratch.path()));
  const auto run = [&](const std::string& function) {
    std::string text = small_config("grpo", scratch.path());
    const std::string rule = "{rule: regex, pattern: \"^[0-4]\"}";
    text.replace(text.find(rule), rule.size(), "{function: " + function + "}");
    write_text(scratch / (function + ".yaml"), text);
    host::ChildOptions options;
    options.command = {COLLIMATE_BIN_DIR "/example_reward", scratch / (function + ".yaml"), scratch / function};
    return host::run_command(options, "", base::Deadline::after(120));
  };
  const host::CommandResult good = run("ascending");
  ASSERT_TRUE(good.status.ok()) << good.errors;
  EXPECT_GT(nlohmann::json::parse(good.output).at("rewards/ascending/mean").get<double>(), 0);
  const host::CommandResult bad = run("descending");
  EXPECT_EQ(bad.status.code, 2);
  EXPECT_NE(bad.errors.find("[reward.function] expected one of the registered functions ascending, got \"descending\""),
            std::string::npos)
      << bad.errors;
}

}  // namespace
}  // namespace collimate::test

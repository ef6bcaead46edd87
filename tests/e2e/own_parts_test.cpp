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
  EXPECT_EQ(asked, 3 * 16 + 3);  // every sample once, and the trial of three completions before the run
  EXPECT_EQ(model_bytes(scratch / "function"), model_bytes(scratch / "rule")) << "the same reward as the rule's";
  train_text(small_config("grpo", scratch.path()), scratch / "low", {"reward=[{function: starts_low, limit: 49}]"});
  EXPECT_NE(model_bytes(scratch / "low"), model_bytes(scratch / "rule"));
}

// The program of examples/own_parts is `collimate` with a loss, an advantage and a reward more, in workers of their own
// processes too.
class OwnParts : public testing::Test {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }
  // The small task's run by its reward, with `keys` set.
  host::CommandResult train(const std::string& name, std::vector<std::string> keys) {
    write_text(scratch_ / "run.yaml", small_config("grpo", scratch_.path()));
    std::vector<std::string> words = {
        COLLIMATE_BIN_DIR "/own_parts", "train", scratch_ / "run.yaml", "--output", scratch_ / name, "--json"};
    for (const std::string& key : keys) words.insert(words.end(), {"--set", key});
    return host::run_command({.command = std::move(words)}, "", base::Deadline::after(120));
  }
  const Scratch scratch_{"own-parts"};
};

const std::vector<std::string> kOwn = {"reward=[{function: ascending}]", "algorithm.loss_type=reinforce",
                                       "algorithm.advantage=rank"};

TEST_F(OwnParts, TrainByTheirNames) {
  const host::CommandResult good = train("own", kOwn);
  ASSERT_TRUE(good.status.ok()) << good.errors;
  const auto metrics = nlohmann::json::parse(good.output).at("final_metrics");
  EXPECT_GT(metrics.at("rewards/ascending/mean").get<double>(), 0);
  EXPECT_LT(metrics.at("reinforce/log_prob").get<double>(), 0);
  std::vector<std::string> apart = kOwn;
  apart.emplace_back("cluster=local-processes");
  const host::CommandResult processes = train("apart", apart);
  ASSERT_TRUE(processes.status.ok()) << processes.errors;
  EXPECT_EQ(model_bytes(scratch_ / "own"), model_bytes(scratch_ / "apart"));
}

TEST_F(OwnParts, AreNamedWhereAnotherIsAskedFor) {
  for (const auto& [key, known] : std::vector<std::pair<std::string, std::string>>{
           {"reward=[{function: descending}]",
            "expected one of the registered functions ascending, got \"descending\""},
           {"algorithm.loss_type=reinforced", "reinforce"},
           {"algorithm.advantage=ranks", "rank"}}) {
    const host::CommandResult bad = train("bad", {key});
    EXPECT_EQ(bad.status.code, 2) << key;
    EXPECT_NE(bad.errors.find(known), std::string::npos) << bad.errors;
  }
}

}  // namespace
}  // namespace collimate::test

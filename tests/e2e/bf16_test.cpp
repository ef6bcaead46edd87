#include <gtest/gtest.h>

#include "tests/e2e/run_support.h"

namespace collimate::test {
namespace {

// bf16 operands in every linear layer of a whole recipe: generation, reference and training still agree to the bit.
TEST(BFloat16, GrpoSamplesAndTrainsTheSameValues) {
  const Scratch scratch("bf16");
  write_small_task(scratch.path());
  const std::vector<std::string> sets = {"algorithm.beta=0.04"};
  std::vector<std::string> bf16 = sets;
  bf16.emplace_back("models.policy.compute=bfloat16");
  train_text(small_config("grpo", scratch.path()), scratch / "fp32", sets);
  train_text(small_config("grpo", scratch.path()), scratch / "bf16", bf16);
  const Metrics metrics = metrics_of(scratch / "bf16");
  ASSERT_EQ(metrics.size(), 3U);
  for (const nlohmann::json& line : metrics) {
    const double tokens = 16 * line.at("response_length/mean").get<double>();
    EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
    EXPECT_EQ(line.at("mismatch/tokens_other_version"), 0.0);
    EXPECT_NEAR(line.at("mismatch/tokens_compared").get<double>(), tokens, 1e-6);
  }
  EXPECT_EQ(metrics.front().at("actor/kl_loss"), 0.0);  // the reference computes in bf16 too
  EXPECT_NE(model_bytes(scratch / "bf16"), model_bytes(scratch / "fp32"));
}

void expect_equal_in_every_step(const Metrics& metrics, bool several_updates) {
  ASSERT_EQ(metrics.size(), 3U);
  for (const nlohmann::json& line : metrics) {
    const double tokens = 16 * line.at("response_length/mean").get<double>();
    EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
    const double compared = line.at("mismatch/tokens_compared").get<double>();
    const double checked = several_updates ? line.at("mismatch/tokens_checked").get<double>() : 0.0;
    EXPECT_NEAR(compared + checked, tokens, 1e-6);
    EXPECT_EQ(checked > 0, several_updates);
    EXPECT_EQ(line.at("actor/updates"), several_updates ? 4.0 : 1.0);
  }
}

// Policy and value model in bf16.
TEST(BFloat16, PpoSamplesAndTrainsTheSameValues) {
  const Scratch scratch("bf16-ppo");
  write_small_task(scratch.path());
  const std::string run = scratch / "run";
  train_text(small_config("ppo", scratch.path()), run, {"models.policy.compute=bfloat16"});
  expect_equal_in_every_step(metrics_of(run), false);
  for (const nlohmann::json& line : metrics_of(run)) EXPECT_GT(line.at("critic/loss").get<double>(), 0.0);
}

// Every token is compared before the first of four updates, in both orders of additions.
TEST(BFloat16, SeveralUpdatesOfARollout) {
  const Scratch scratch("bf16-updates");
  write_small_task(scratch.path());
  for (const char* recipe : {"grpo", "ppo"}) {
    for (const char* compute : {"bfloat16_amx", "bfloat16_dot"}) {
      const std::string run = scratch / fmt::format("{}-{}", recipe, compute);
      train_text(
          small_config(recipe, scratch.path()), run,
          {fmt::format("models.policy.compute={}", compute), "train.samples_per_update=8", "train.ppo_epochs=2"});
      expect_equal_in_every_step(metrics_of(run), true);
    }
  }
}

// The trained master weights stay fp32: rounded to bf16 they would not be what a run leaves.
TEST(BFloat16, MasterWeightsAreKeptInFp32) {
  const Scratch scratch("bf16-master");
  write_small_task(scratch.path());
  train_text(small_config("sft", scratch.path()), scratch / "run", {"models.policy.compute=bfloat16"});
  const std::string bytes = model_bytes(scratch / "run");
  EXPECT_NE(bytes.find("\"F32\""), std::string::npos);
  int64_t fine = 0;  // floats with bits below bf16's
  for (size_t at = bytes.size() - 4096; at + 4 <= bytes.size(); at += 4) fine += bytes[at] != 0 || bytes[at + 1] != 0;
  EXPECT_GT(fine, 900);
}

}  // namespace
}  // namespace collimate::test

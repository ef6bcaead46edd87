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

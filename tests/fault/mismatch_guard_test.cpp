#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

// Runs of the program with one kernel one ulp off in one phase, as parity_test's KernelFault has all of them.
class MismatchGuard : public testing::Test {
 protected:
  void SetUp() override { write_small_task(root_.path()); }

  host::CommandResult train(const std::string& nudged, const std::vector<std::string>& sets = {}) {
    write_text(root_ / "run.yaml", small_config("grpo", root_.path()));
    std::vector<std::string> words = {"train", root_ / "run.yaml", "--output", output(), "--set", "run.iterations=1"};
    for (const std::string& set : sets) {
      words.push_back("--set");
      words.push_back(set);
    }
    fs::remove_all(output());
    return run_collimate(words, {{"COLLIMATE_TEST_NUDGE_AT", nudged}});
  }
  void expect_stopped(const std::string& nudged, const std::vector<std::string>& sets = {}) {
    const host::CommandResult result = train(nudged, sets);
    EXPECT_EQ(result.status.code, 4) << nudged << ": " << result.status.description() << "\n" << result.errors;
    EXPECT_THAT(last_line(result.errors), testing::StartsWith("[mismatch/logprob_abs_max] expected at most 0, got "))
        << nudged;
    EXPECT_FALSE(fs::exists(output() + "/model/model.safetensors")) << nudged;
    EXPECT_THAT(read_text(output() + "/report.html"),
                testing::HasSubstr(":</b> [mismatch/logprob_abs_max] expected at most 0, got "))
        << nudged;
  }
  std::string output() const { return root_ / "out"; }

  Scratch root_{"mismatch-guard"};
};

TEST_F(MismatchGuard, StopsARunWithOneUlpInAnyKernel) {
  for (const char* nudged : {"embedding@prefill", "linear@training", "rms_norm@decode", "rope@prefill",
                             "append_kv@decode", "attention@prefill", "attention@decode", "attention@training",
                             "silu_mul@training", "log_softmax@decode", "sample", "log_prob"})
    expect_stopped(nudged);
}

// bf16 in one order of additions, and adapters, which begin to do something after the first update.
TEST_F(MismatchGuard, StopsARunInBf16AndOneWithAdapters) {
  for (const char* nudged : {"rms_norm@decode/bf16", "rope@training/bf16", "round_bf16@training/bf16",
                             "append_kv@prefill/bf16", "attention@decode/bf16", "linear@training", "sample"})
    expect_stopped(nudged, {"models.policy.compute=bfloat16_dot"});
  for (const char* compute : {"float32", "bfloat16_amx"})
    expect_stopped(
        fmt::format("scale@decode{}", compute == std::string("float32") ? "" : "/bf16"),
        {fmt::format("models.policy.compute={}", compute), "models.policy.lora={rank: 4}", "run.iterations=3"});
}

// The check pass over all rows: its kernels alone are wrong, and those of the updates right.
TEST_F(MismatchGuard, StopsARunBeforeTheFirstOfSeveralUpdates) {
  for (const char* nudged : {"linear@scoring", "attention@scoring"})
    expect_stopped(nudged, {"train.samples_per_update=8"});
  const host::CommandResult unchecked =
      train("linear@scoring", {"train.samples_per_update=8", "train.mismatch_check=false"});
  EXPECT_TRUE(unchecked.status.ok()) << unchecked.errors;
}

TEST_F(MismatchGuard, ALimitLetsSmallerDifferencesPass) {
  EXPECT_TRUE(train("linear@training", {"train.mismatch_limit=1e-4"}).status.ok());
  EXPECT_TRUE(train("").status.ok());
}

}  // namespace
}  // namespace collimate::test

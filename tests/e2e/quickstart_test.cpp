#include <gtest/gtest.h>

#include "collimate/graph/replay.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

// `make quickstart`, reduced: its recordings replay, every trained token is compared with the one decoded, and it ends
// as the README says.
TEST(Quickstart, ReducedRunIsRecordedComparedAndReported) {
  const Scratch scratch("quickstart");
  const std::string output = scratch / "run";
  const host::CommandResult result =
      run_collimate({"bench", "quickstart", "--single", "--reduced", "--output", output});
  ASSERT_TRUE(result.status.ok()) << result.errors;
  const std::string line = last_line(result.output);
  EXPECT_TRUE(line.starts_with("held-out accuracy ")) << line;
  EXPECT_TRUE(line.ends_with("report: " + output + "/report.html")) << line;
  EXPECT_TRUE(fs::exists(output + "/report.html"));
  for (const char* run : {"sft", "grpo"}) {
    const std::string recording = read_text(output + "/" + run + "/events.jsonl");
    EXPECT_GT(recording.size(), 1000U) << run;
    EXPECT_EQ(graph::check_recording(recording), "") << run;
  }
  int64_t compared = 0;
  for (const std::string& text : lines_of(output + "/grpo/metrics.jsonl")) {
    const auto metrics = nlohmann::json::parse(text);
    if (!metrics.contains("mismatch/tokens_compared")) continue;  // step 0 is an evaluation
    compared += metrics.at("mismatch/tokens_compared").get<int64_t>();
    EXPECT_EQ(metrics.at("mismatch/tokens_other_version"), 0.0);
    EXPECT_EQ(metrics.at("mismatch/logprob_abs_max"), 0.0);
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace collimate::test

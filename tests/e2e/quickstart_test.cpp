
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "collimate/graph/replay.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

// The sizes that the README names, no problem in two files, none twice, and every answer sorted.
void expect_a_large_disjoint_task(const std::string& directory) {
  std::set<std::string> seen;
  for (const auto& [file, answer, rows] :
       std::vector<std::tuple<const char*, const char*, size_t>>{{"demonstrations", "completion", 120},
                                                                 {"held_out", "ground_truth", 500},
                                                                 {"problems", "ground_truth", 20000},
                                                                 {"validation", "completion", 500}}) {
    const std::vector<std::string> lines = lines_of(fmt::format("{}/{}.jsonl", directory, file));
    EXPECT_EQ(lines.size(), rows) << file;
    for (const std::string& line : lines) {
      const auto row = nlohmann::json::parse(line);
      const auto prompt = row.at("prompt").get<std::string>();
      EXPECT_TRUE(seen.insert(prompt).second) << prompt << " again in " << file;
      std::string sorted = prompt.substr(0, 6);
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(row.at(answer), sorted);
    }
  }
}

// Completions that an iteration of the quickstart's GRPO trains: 8 of each of 64 prompts.
constexpr double kGrpoRows = 64 * 8;

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
  expect_a_large_disjoint_task(output + "/task");
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
    EXPECT_NEAR(metrics.at("mismatch/tokens_compared").get<double>() +
                    metrics.at("mismatch/tokens_other_version").get<double>(),
                kGrpoRows * metrics.at("response_length/mean").get<double>(), 1e-6);
    EXPECT_EQ(metrics.at("mismatch/tokens_other_version"), 0.0);
    EXPECT_EQ(metrics.at("mismatch/logprob_abs_max"), 0.0);
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace collimate::test

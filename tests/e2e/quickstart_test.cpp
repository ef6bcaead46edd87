
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <tuple>

#include "tests/fault/cli_support.h"
#include "tests/support/graph/replay.h"

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

host::CommandResult quickstart(std::vector<std::string> words) {
  words.insert(words.begin(), {"bench", "quickstart"});
  return run_collimate(words);
}

// Calls of a few iterations have this in common.
std::vector<std::string> small(const std::string& grpo_iterations, const std::string& output) {
  return {"--sft-iterations", "12", "--grpo-iterations", grpo_iterations, "--output", output};
}

// Completions that an iteration of the quickstart's GRPO trains: 8 of each of 64 prompts.
constexpr double kGrpoRows = 64 * 8;

// `make quickstart`, reduced: its recordings replay, every trained token is compared with the one decoded, and it ends
// as the README says.
TEST(Quickstart, ReducedRunIsRecordedComparedAndReported) {
  const Scratch scratch("quickstart");
  const std::string output = scratch / "run";
  const host::CommandResult result = quickstart({"--single", "--reduced", "--output", output});
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

  std::vector<std::string> shorter = small("2", output);
  shorter.insert(shorter.end(), {"--single", "--reduced"});
  const host::CommandResult again = quickstart(shorter);  // afresh: not refused as another config's, not gone on with
  ASSERT_TRUE(again.status.ok()) << again.errors;
  EXPECT_EQ(lines_of(output + "/grpo/metrics.jsonl").size(), 3U);  // the evaluation before, and two steps
}

// Neither the directory nor the clock is in the numbers.
TEST(Quickstart, TheSameSeedGivesTheSameNumbersElsewhere) {
  const Scratch scratch("quickstart-seed");
  std::vector<std::string> lines, numbers;
  for (const char* name : {"a", "b"}) {
    const std::string output = scratch / name;
    std::vector<std::string> words = small("2", output);
    words.insert(words.end(), {"--single", "--reduced", "--seed", "5"});
    const host::CommandResult result = quickstart(words);
    ASSERT_TRUE(result.status.ok()) << result.errors;
    const std::string line = last_line(result.output);
    lines.push_back(line.substr(0, line.find(" in ")));
    numbers.push_back(fmt::format("{}\n{}", fmt::join(lasting_metrics(output + "/sft"), "\n"),
                                  fmt::join(lasting_metrics(output + "/grpo"), "\n")));
    numbers.back() += read_text(output + "/grpo/model/model.safetensors");
  }
  EXPECT_TRUE(lines[0].starts_with("held-out accuracy ")) << lines[0];
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_TRUE(numbers[0] == numbers[1]) << "other metrics or weights";
  EXPECT_GT(numbers[0].size(), 1000U);
}

// Without --reduced the second call says what the first one said and leaves every run as it was.
TEST(Quickstart, ASecondCallTellsOfTheFirst) {
  const Scratch scratch("quickstart-twice");
  const std::string output = scratch / "run";
  std::vector<std::string> words = small("2", output);
  words.emplace_back("--single");
  const host::CommandResult first = quickstart(words);
  ASSERT_TRUE(first.status.ok()) << first.errors;
  std::vector<fs::path> files;
  for (const char* run : {"/sft", "/grpo"})
    for (const char* name : {"/model/model.safetensors", "/summary.json", "/trace.json", "/events.jsonl"})
      files.emplace_back(output + run + name);
  std::vector<fs::file_time_type> times;
  for (const fs::path& file : files) times.push_back(fs::last_write_time(file));

  const host::CommandResult second = quickstart(words);
  ASSERT_TRUE(second.status.ok()) << second.errors;
  EXPECT_EQ(second.output, first.output);
  for (size_t i = 0; i < files.size(); ++i) EXPECT_EQ(fs::last_write_time(files[i]), times[i]) << files[i];
}

// The numbers of each row of the table: before, after, seconds.
std::vector<std::vector<double>> rows_of_table(const std::string& output) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| 1 |")) continue;
    const size_t name_end = line.find('|', line.find('|', 1) + 1);
    std::istringstream cells(line.substr(name_end + 1));
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

// The bench measures each time: the second call trains again. The control gets at least GRPO's time.
TEST(Quickstart, TheBenchRunsTwiceAndSftContinuedTakesAsLongAsGrpo) {
  const Scratch scratch("quickstart-bench");
  std::vector<std::string> words = small("1", scratch / "run");
  words.insert(words.end(), {"--seeds", "1"});
  auto trained = fs::file_time_type::min();
  for (int call = 1; call <= 2; ++call) {
    const host::CommandResult result = quickstart(words);
    ASSERT_TRUE(result.status.ok()) << "call " << call << ": " << result.errors;
    const std::vector<std::vector<double>> rows = rows_of_table(result.output);
    ASSERT_EQ(rows.size(), 4U) << result.output;
    for (const std::vector<double>& row : rows) ASSERT_EQ(row.size(), 3U) << result.output;
    EXPECT_GE(rows[3][2], rows[0][2]) << result.output;
    const auto written = fs::last_write_time(scratch / "run/seed-1/grpo/model/model.safetensors");
    EXPECT_GT(written, trained) << "call " << call;
    trained = written;
  }
}

// Reduced runs have a directory of their own, and none is emptied that no quickstart has filled.
TEST(Quickstart, ReducedRunsAreApartAndRemoveNothingElse) {
  const Scratch scratch("quickstart-apart");
  write_text(scratch / "runs/quickstart-reduced/sft/config.resolved.yaml", "of another program");
  host::ChildOptions options;
  options.command = {collimate_program(), "bench", "quickstart", "--single", "--reduced"};
  options.working_directory = scratch.path();
  const host::CommandResult result = host::run_command(options, "", base::Deadline::after(60));
  EXPECT_EQ(result.status.code, 2) << result.status.description();
  EXPECT_EQ(last_line(result.errors),
            "[--output] expected a new directory or one of an earlier quickstart, got runs/quickstart-reduced, which "
            "holds other files; try another --output");
  EXPECT_EQ(read_text(scratch / "runs/quickstart-reduced/sft/config.resolved.yaml"), "of another program");
}

}  // namespace
}  // namespace collimate::test

#include "collimate/report/comparison.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collimate/base/error.h"
#include "collimate/report/report.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::report {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Two made-up runs, of different rates and lengths, in directories of their own.
class ComparisonTest : public testing::Test {
 protected:
  ComparisonTest() {
    make("fast", 4, "1e-3");
    make("slow", 3, "1e-4");
  }

  void make(const fs::path& name, int steps, const std::string& rate) {
    const fs::path run = root_ / name;
    fs::create_directories(run / "samples");
    std::string lines;
    for (int step = 1; step <= steps; ++step)
      lines += fmt::format("{{\"step\":{0},\"time_seconds\":{0},\"val/loss\":{1},\"actor/lr\":{2}}}\n", step, 5 - step,
                           rate);
    std::ofstream(run / "metrics.jsonl") << lines;
    std::ofstream(run / "config.resolved.yaml")
        << fmt::format("recipe: sft\ntrain: {{learning_rate: {}, max_grad_norm: 1}}\n", rate);
    std::ofstream(run / "samples/eval-000003.jsonl")
        << fmt::format("{{\"prompt\":\"p\",\"completion\":\"of {}\",\"reward\":1}}\n", name.string());
  }

  std::string page() const { return render_comparison({root_ / "fast", root_ / "slow"}); }

  const base::TemporaryDirectory directory_;
  const fs::path root_ = directory_.path();
};

TEST_F(ComparisonTest, NamesBothRunsAndLaysTheirCurvesOverEachOther) {
  const std::string page = this->page();
  EXPECT_THAT(page, HasSubstr("<h1>Runs fast and slow</h1>"));
  EXPECT_THAT(page,
              testing::ContainsRegex("<h3>Held-out loss</h3><ul class=\"legend\">.*</svg>fast</li>.*</svg>slow</li>"));
  EXPECT_THAT(page, HasSubstr("so not drawn: Learning rate (fast 0.001, slow 0.0001)."));
  EXPECT_THAT(page, testing::ContainsRegex("of fast.*of slow"));
}

TEST_F(ComparisonTest, NumbersStandSideBySide) {
  EXPECT_THAT(page(), HasSubstr("<th scope=\"row\">held-out loss</th><td>4 → 1</td><td>4 → 2</td>"));
}

// The reward of one run is its accuracy, which its own page says once; beside the other's it is said.
TEST_F(ComparisonTest, ARowHasTheNumberOfEachRunThatHasOne) {
  const auto write = [&](const fs::path& name, double reward) {
    std::ofstream file(root_ / name / "metrics.jsonl");
    for (int step = 1; step <= 3; ++step)
      file << fmt::format("{{\"step\":{0},\"time_seconds\":{0},\"val/accuracy\":{1},\"val/reward/mean\":{2}}}\n", step,
                          step / 4.0, reward * step / 4.0);
  };
  write("fast", 1);
  write("slow", 2);
  EXPECT_THAT(page(), HasSubstr("<th scope=\"row\">held-out reward</th><td>0.25 → 0.75</td><td>0.5 → 1.5</td>"));
  EXPECT_THAT(render_report(root_ / "fast"), testing::Not(HasSubstr("held-out reward")));
}

TEST_F(ComparisonTest, ListsTheKeysThatDifferAlone) {
  std::vector<RunData> runs = {read_run(root_ / "fast"), read_run(root_ / "slow")};
  const std::vector<Difference> found = config_differences(runs);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "train.learning_rate");
  EXPECT_EQ(found[0].values, (std::vector<std::string>{"0.001", "0.0001"}));
  runs[1].settings = runs[0].settings;
  EXPECT_TRUE(config_differences(runs).empty());
}

TEST_F(ComparisonTest, KeysThatNotAllRunsReadAreFoldedAway) {
  std::ofstream(root_ / "slow/config.resolved.yaml") << "recipe: dpo\ntrain: {learning_rate: 1e-4}\n";
  const std::string page = this->page(), fold = "<details><summary>1 more, which only some of these runs use</summary>";
  const size_t folded = page.find(fold);
  ASSERT_NE(folded, std::string::npos);
  const auto place_of = [&](const char* key) { return page.find(fmt::format("<th scope=\"row\">{}</th>", key)); };
  EXPECT_LT(place_of("train.learning_rate"), folded);
  EXPECT_GT(place_of("train.max_grad_norm"), folded);
  fs::remove(root_ / "slow/config.resolved.yaml");
  EXPECT_THAT(this->page(), testing::Not(HasSubstr("<details><summary>"))) << "there all keys are of one run";
}

TEST_F(ComparisonTest, RunsOfOneNameAreToldApartByTheirPaths) {
  make("other/fast", 2, "1e-3");
  std::vector<RunData> runs = {read_run(root_ / "fast"), read_run(root_ / "other/fast")};
  name_apart(runs);
  EXPECT_EQ(runs[1].name, "other/fast");
  EXPECT_NE(runs[0].name, "other/fast");
}

TEST_F(ComparisonTest, WantsTwoDifferentRuns) {
  EXPECT_EQ(base::message_of([&] { render_comparison({root_ / "fast"}); }),
            "[report] expected two or more runs to compare, got 1; try collimate report DIR DIR");
  EXPECT_THAT(base::message_of([&] {
                render_comparison({root_ / "fast", root_ / "slow/../fast"});
              }),
              HasSubstr("expected different runs, got "));
  EXPECT_THAT(base::message_of([&] {
                render_comparison({root_ / "fast", root_ / "none"});
              }),
              HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace collimate::report

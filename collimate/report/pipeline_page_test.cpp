#include "collimate/report/pipeline_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::report {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

void write_page_file(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

constexpr const char* kSummary = R"({"pipeline": "sft, reward, ppo", "actor_model": "<a>", "reward_model": "b",
  "data_split": "2,4,4", "seed": 3, "steps": [{"folder": "1-sft", "words": "tuning", "rows": 4},
  {"folder": "3-ppo", "words": "practice", "rows": 8}]})";

TEST(PipelinePage, ShowsStepsThatHaveBegunAndNamesTheOthers) {
  const base::TemporaryDirectory scratch;
  write_page_file(scratch.path() + "/summary.json", kSummary);
  write_page_file(scratch.path() + "/3-ppo/metrics.jsonl",
                  R"({"step": 1, "time_seconds": 1, "critic/rewards/mean": 0.25, "actor/reward_kl_penalty": 0.5})"
                  "\n"
                  R"({"step": 2, "time_seconds": 2, "critic/rewards/mean": 0.75, "actor/reward_kl_penalty": 2})"
                  "\n");
  EXPECT_TRUE(is_pipeline(scratch.path()));
  const std::string page = render_pipeline(scratch.path());
  EXPECT_THAT(page, AllOf(HasSubstr("0 of 2 steps done"), HasSubstr("split 2,4,4 by seed 3"), HasSubstr("&lt;a&gt;"),
                          HasSubstr("<h2>1-sft: tuning</h2>"), HasSubstr("This step has not begun."),
                          HasSubstr("href=\"3-ppo/report.html\""), Not(HasSubstr("href=\"1-sft")),
                          HasSubstr("reward in training 0.25 → 0.75; KL to the reference 0.5 → 2 nats per token")));
}

TEST(PipelinePage, IsOfPipelinesAlone) {
  const base::TemporaryDirectory scratch;
  const auto error = [&] { return base::message_of([&] { render_pipeline(scratch.path()); }); };
  EXPECT_FALSE(is_pipeline(scratch.path()));
  EXPECT_THAT(error(), HasSubstr("expected the summary of a pipeline, got none"));
  for (const char* other : {"", "[", "{\"recipe\": \"sft\"}", "{\"pipeline\": \"\", \"steps\": 3}"}) {
    write_page_file(scratch.path() + "/summary.json", other);
    EXPECT_FALSE(is_pipeline(scratch.path())) << other;
  }
}

}  // namespace
}  // namespace collimate::report

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collimate/report/report.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::report {
namespace {

using testing::HasSubstr;

std::string page_of(const std::string& summary) {
  const base::TemporaryDirectory directory;
  std::ofstream(directory.path("metrics.jsonl")) << "{\"step\":1,\"time_seconds\":1,\"actor/loss\":2}\n";
  std::ofstream(directory.path("summary.json")) << summary;
  return render_report(directory.path());
}

TEST(Sections, SayOnceThatTheRunHasDiverged) {
  const std::string how = "the loss has risen from 2 to 9", page = page_of(R"({"diverged": ")" + how + R"("})");
  EXPECT_THAT(page, HasSubstr("<b>This run has diverged:</b> " + how + "</p>"));
  EXPECT_EQ(page.find(how), page.rfind(how));
  EXPECT_THAT(page_of(R"({"diverged": ""})"), testing::Not(HasSubstr("diverged")));
}

TEST(Sections, SayHowManyRowsAreHeldOut) {
  EXPECT_THAT(
      page_of(R"({"held_out": [{"data": "data.eval", "measured": "completions", "examples": 64, "rows": 256,
                          "rows_in_samples": 100}]})"),
      HasSubstr("<th scope=\"row\">held out: data.eval</th><td>completions of 64 examples: 256 rows, 100 of them "
                "in samples/</td>"));
}

}  // namespace
}  // namespace collimate::report

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "collimate/report/report.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// The page of a run that has written these lines of metrics, and was stopped with this exit code.
class StoppedRun : public testing::Test {
 protected:
  std::string page(const std::string& metrics, int exit_code, int iterations) const {
    write("metrics.jsonl", metrics);
    write("stopped.json", fmt::format(R"({{"cause": "[train] expected <a>", "exit_code": {}, "iterations": {},
                                           "warnings": ["odd"], "ended": "2026-11-24T19:36:22Z"}})",
                                      exit_code, iterations));
    return render_report(directory_.path());
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(directory_.path(name)) << text; }

  const base::TemporaryDirectory directory_;
  const std::string two_lines_ = R"({"step":1,"time_seconds":2,"actor/lr":1}
{"step":2,"time_seconds":4,"actor/lr":1}
)";
};

TEST_F(StoppedRun, BeforeItsFirstIterationHasAPageThatSaysWhy) {
  const std::string shown = page("", 4, 0);
  EXPECT_THAT(shown, HasSubstr("<b>A guard stopped this run before an iteration was finished:</b> [train] expected "
                               "&lt;a&gt;</p><p class=\"warning\"><b>Warning:</b> odd</p>"));
  EXPECT_THAT(shown, HasSubstr(", stopped 2026-11-24 19:36 UTC · no iteration was finished</p>"));
  EXPECT_THAT(shown, HasSubstr("not shown: an iteration in metrics.jsonl, summary.json,"));
  for (const char* of_metrics : {"<h2>Curves</h2>", "All 0 metrics"}) EXPECT_THAT(shown, Not(HasSubstr(of_metrics)));
}

TEST_F(StoppedRun, SaysByWhatAndWhen) {
  EXPECT_THAT(page(two_lines_, 3, 2), HasSubstr("<b>A signal stopped this run after iteration 2:</b>"));
  EXPECT_THAT(page(two_lines_, 1, 2), HasSubstr("<b>An error ended this run after iteration 2:</b>"));
  EXPECT_THAT(page(two_lines_, 1, 2), HasSubstr(" · iterations 1 to 2 · 4 s</p>"));
  write("summary.json", "{}");
  EXPECT_THAT(page(two_lines_, 1, 2), Not(HasSubstr("ended this run after")));
}

}  // namespace
}  // namespace collimate::report

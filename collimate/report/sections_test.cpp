#include "collimate/report/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

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

RunData run_with_losses(double first, double last) {
  const auto file = [](int64_t step, double loss) -> SampleFile {
    return {.step = step,
            .held_out = true,
            .samples = {{.prompt = "p", .expected = "", .texts = {{"target", "t", "loss", loss}}, .model_answer = {}}}};
  };
  RunData run;
  run.name = "one";
  run.samples = {.measure = "", .first = file(0, first), .last = file(9, last)};
  return run;
}

TEST(Sections, ASampleWithoutANumberShowsNone) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto shown = [](double first, double last) { return draw_samples(run_with_losses(first, last)); };
  EXPECT_THAT(shown(2.5, 0.5), HasSubstr("<span class=\"chip up\">loss per token 2.5 → 0.5</span>"));
  EXPECT_THAT(shown(kNone, 0.5), HasSubstr("<span class=\"chip flat\">loss per token 0.5</span>"));
  EXPECT_THAT(shown(2.5, kNone), testing::Not(HasSubstr("chip")));
  const std::string compared = draw_samples({run_with_losses(1, 2.5), run_with_losses(1, kNone)});
  EXPECT_THAT(compared, HasSubstr("one: loss per token 2.5</span>"));
  EXPECT_THAT(compared, testing::Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace collimate::report

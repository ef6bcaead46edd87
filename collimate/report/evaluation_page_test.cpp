#include "collimate/report/evaluation_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

TEST(EvaluationPage, HasNumbersDifferencesAndSamples) {
  const auto metrics = [](double value) {
    return Json{{"accuracy", {{"value", value}, {"standard_error", 0.02}, {"units", 3}}}};
  };
  const auto outputs = [](const char* model, const char* text, double reward) {
    return Json{{"model", model}, {"outputs", {{{"text", text}, {"value", reward}}}}};
  };
  const Json document = {
      {"data", "a<b.jsonl"},
      {"measure", "completions"},
      {"settings", {{"seed", 3}}},
      {"models",
       {{{"model", "sft"},
         {"left_out", {{{"data", "--data"}, {"rows", 2}, {"of", 5}, {"what", "left out (--long-rows); the <first>"}}}},
         {"metrics", metrics(0.468)}},
        {{"model", "grpo"}, {"left_out", Json::array()}, {"metrics", metrics(0.838)}}}},
      {"differences", {{{"from", "sft"}, {"to", "grpo"}, {"metrics", metrics(0.37)}}}},
      {"sample_values", "reward"},
      {"samples",
       {{{"prompt", "3<1?"}, {"expected", "no"}, {"models", {outputs("sft", "yes", 0), outputs("grpo", "no&", 1)}}}}}};
  const std::string page = render_evaluation(document);
  EXPECT_THAT(page, HasSubstr("<h1>completions of a&lt;b.jsonl</h1>"));
  EXPECT_THAT(page, HasSubstr(R"(<td>accuracy</td><td class="n">0.468 ± 0.02</td><td class="n">0.838 ± 0.02</td>)"
                              R"(<td class="n">+0.37 ± 0.02</td>)"));
  EXPECT_THAT(page, HasSubstr("grpo less sft"));
  EXPECT_THAT(page, HasSubstr("sft: --data: 2 of 5 rows left out (--long-rows); the &lt;first&gt;</p>"));
  EXPECT_THAT(page, HasSubstr("3&lt;1?"));
  EXPECT_THAT(page, HasSubstr(R"(reward 1</span><div class="text">no&amp;</div>)"));
  EXPECT_THAT(page, HasSubstr("<tr><th>seed</th><td>3</td></tr>"));
  EXPECT_THAT(page, Not(HasSubstr("<b.jsonl")));
}

TEST(EvaluationPage, ANumberOfOneUnitHasNoError) {
  const Json document = {{"data", "a.jsonl"},
                         {"measure", "perplexity"},
                         {"settings", Json::object()},
                         {"models",
                          {{{"model", "m"},
                            {"left_out", Json::array()},
                            {"metrics", {{"loss", {{"value", 1.5}, {"standard_error", nullptr}, {"units", 1}}}}}}}},
                         {"differences", Json::array()},
                         {"sample_values", ""},
                         {"samples", Json::array()}};
  EXPECT_THAT(render_evaluation(document), HasSubstr(R"(<td>loss</td><td class="n">1.5</td>)"));
}

}  // namespace
}  // namespace collimate::report

#include "collimate/cli/eval_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/plan/show/columns.h"

namespace collimate::cli {
namespace {

using testing::ElementsAre;
using Json = nlohmann::ordered_json;

Json number(double value, double error) {
  return {{"value", value}, {"standard_error", error > 0 ? Json(error) : Json()}, {"units", 500}};
}

Json model(const std::string& name, double accuracy) {
  return {{"model", name},
          {"rows", 1000},
          {"left_out", Json::array()},
          {"metrics", {{"accuracy", number(accuracy, 0.0221)}, {"response_length/mean", number(6, 0)}}}};
}

Json document(const std::vector<Json>& models) {
  Json made = {{"data", "held_out.jsonl"},
               {"measure", "completions"},
               {"settings", {{"seed", 3}, {"temperature", 0.5}}},
               {"models", models},
               {"differences", Json::array()}};
  for (size_t i = 1; i < models.size(); ++i)
    made["differences"].push_back(
        {{"from", models[0].at("model")},
         {"to", models[i].at("model")},
         {"metrics", {{"accuracy", number(0.37, 0.01)}, {"response_length/mean", number(-1, 0)}}}});
  return made;
}

TEST(EvaluationTable, OfOneModel) {
  EXPECT_THAT(evaluation_table(document({model("sft", 0.468)}), 120),
              ElementsAre("completions of held_out.jsonl: 500 prompts, 1000 samples, temperature 0.5, seed 3", "",
                          "                       sft", "accuracy               0.468 ± 0.022",
                          "response_length/mean   6", "", "± is the standard error."));
}

TEST(EvaluationTable, OfTwoHasTheirDifference) {
  const auto lines = evaluation_table(document({model("sft", 0.468), model("grpo", 0.838)}), 80);
  // The heading takes two lines.
  EXPECT_EQ(lines.at(3), "                       sft             grpo            difference");
  EXPECT_EQ(lines.at(4), "accuracy               0.468 ± 0.022   0.838 ± 0.022   +0.37 ± 0.01");
  EXPECT_EQ(lines.at(5), "response_length/mean   6               6               -1");
}

// As a run of several models logs them long before its table.
TEST(EvaluationTable, EndsWithTheRowsThatAreLeftOut) {
  const auto rows = [](int64_t count, const char* what, const char* rest = "") {
    return Json{{"data", "--data"}, {"rows", count}, {"of", 40}, {"what", what}, {"rest", rest}};
  };
  Json both = document({model("sft", 0.468), model("grpo", 0.838)});
  for (Json& one : both["models"]) one["left_out"] = {rows(2, "left out (--bad-rows drop)", "; the first: [a:3] …")};
  both["models"][1]["left_out"].push_back(rows(1, "truncated (--long-rows truncate)"));
  const auto lines = evaluation_table(both, 120);
  ASSERT_GE(lines.size(), 3U);
  EXPECT_THAT(std::vector<std::string>(lines.end() - 3, lines.end()),
              ElementsAre("", "--data: 2 of 40 rows left out (--bad-rows drop)",
                          "grpo: --data: 1 of 40 rows truncated (--long-rows truncate)"));
}

TEST(EvaluationTable, OfThreeSaysWhoseDifferenceItIs) {
  const auto lines = evaluation_table(document({model("a", 0.1), model("b", 0.2), model("c", 0.3)}), 120);
  EXPECT_EQ(lines.at(2), "                       a             b             c             b less a       c less a");
}

TEST(EvaluationTable, FitsItsColumnsWhateverModelsAreCalled) {
  const std::string long_name = "runs/of/a/person/who/writes/everything/down/model";
  std::vector<Json> models;
  for (int i = 0; i < 5; ++i) models.push_back(model(long_name + std::to_string(i), 0.1 * i));
  const Json asked = document(models);
  for (const int columns : {60, 80, 120, 180}) {
    const auto lines = evaluation_table(asked, columns);
    for (const std::string& line : lines) EXPECT_LE(plan::width_of(line), columns) << line;
    for (const auto& made : models)
      EXPECT_THAT(lines, testing::Contains(testing::HasSubstr(made.at("model").get<std::string>())));
    const auto heads = [&](const std::string& head) {
      return std::ranges::count_if(lines, [&](const std::string& line) {
        return line.starts_with("  ") && line.find(head) != std::string::npos;
      });
    };
    EXPECT_EQ(heads("(5) less (1)"), 1) << columns;
    const auto of_accuracy =
        std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("accuracy"); });
    EXPECT_EQ(of_accuracy, heads("(")) << "each block has the names of the numbers";
    EXPECT_EQ(of_accuracy == 1, columns >= 180) << columns;
  }
}

}  // namespace
}  // namespace collimate::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/recipe/evaluation/of_models.h"
#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"

namespace collimate::test {
namespace {

using base::message_of;
using recipe::EvaluationCall;
using recipe::MeasureKind;
using testing::HasSubstr;

// One tiny run of each recipe; what its evaluation said at the end, and what is said of its model afterwards.
class EvaluationOfAModel : public testing::Test {
 protected:
  static void SetUpTestSuite() { write_small_task(root().path()); }
  static const Scratch& root() {
    static const Scratch scratch("evaluation");
    return scratch;
  }

  // The last held-out values of a run from random weights, whose model is then in OUTPUT/model.
  static nlohmann::ordered_json run(const std::string& recipe, const std::string& held_out, const std::string& more,
                                    const std::string& output) {
    const std::string text = small_config(recipe, root().path()) + more;
    return train_text(text, root() / output, {"data.eval=" + (root() / held_out)}).last_evaluation;
  }

  EvaluationCall call(const std::string& data, nlohmann::json section = nlohmann::json::object()) const {
    return {.data = root() / data, .section = std::move(section), .completion_tokens = 6, .seed = 7};
  }

  static void expect_same(const nlohmann::ordered_json& of_run, const recipe::ModelEvaluation& made) {
    EXPECT_EQ(of_run.size(), made.measures.size());
    expect_within(of_run, "val/", made);
  }
  // The metrics of that name's beginning are what was measured.
  static void expect_within(const nlohmann::ordered_json& of_run, const std::string& prefix,
                            const recipe::ModelEvaluation& made) {
    ASSERT_FALSE(of_run.empty());
    for (const recipe::Measure& measure : made.measures)
      EXPECT_EQ(of_run.value(prefix + measure.name, -1.0), recipe::estimate(measure).value) << prefix << measure.name;
  }

  // A choice and a longer one that begins with it: the shorter always has the larger log-prob.
  static std::string write_questions() {
    std::string lines;
    for (const char* answer : {"0", "1"})
      lines += fmt::format("{{\"prompt\": \"12=\", \"choices\": [\"1\", \"1234567\"], \"answer\": {}}}\n", answer);
    write_text(root() / "questions.jsonl", lines);
    return root() / "questions.jsonl";
  }
};

const nlohmann::json kDrawn = {
    {"samples_per_prompt", 4}, {"temperature", 1.0}, {"reward", {{{"rule", "regex"}, {"pattern", "^[0-4]"}}}}};

TEST_F(EvaluationOfAModel, OfARunsModelSaysWhatTheRunSaid) {
  const auto of_run =
      run("grpo", "held_out.jsonl", "evaluation: {samples_per_prompt: 4, temperature: 1.0}\n", "grpo-run");
  for (const char* name : {"val/mean@4", "val/best@4", "val/pass@2", "val/pass@4", "val/maj@4", "val/accuracy"})
    EXPECT_TRUE(of_run.contains(name)) << name << " " << of_run.dump();
  EXPECT_EQ(of_run.at("val/mean@4"), of_run.at("val/reward/mean"));
  EXPECT_GT(of_run.at("val/pass@4"), of_run.at("val/accuracy"));
  const auto made = recipe::evaluate(root() / "grpo-run/model", call("held_out.jsonl", kDrawn));
  EXPECT_EQ(made.rows, 8 * 4);
  ASSERT_EQ(made.shown.size(), 8U);
  EXPECT_EQ(made.shown[0].outputs.size(), 4U);
  expect_same(of_run, made);
}

TEST_F(EvaluationOfAModel, OfDemonstrationsIsTheirPerplexity) {
  const auto of_run = run("sft", "demonstrations.jsonl", "", "sft-run");
  const auto made = recipe::evaluate(root() / "sft-run/model", call("demonstrations.jsonl"));
  EXPECT_EQ(made.measured, MeasureKind::kPerplexity);
  expect_same(of_run, made);
  EXPECT_DOUBLE_EQ(of_run.at("val/perplexity"), std::exp(of_run.at("val/loss").get<double>()));
}

TEST_F(EvaluationOfAModel, OfPairsIsByTheRewardModelsScores) {
  const auto of_run = run("reward", "pairs.jsonl", "", "reward-run");
  const auto made = recipe::evaluate(root() / "reward-run/model", call("pairs.jsonl"));
  EXPECT_EQ(made.measured, MeasureKind::kPairs);
  EXPECT_EQ(made.values, "score");
  expect_same(of_run, made);
  EXPECT_THAT(message_of([&] { recipe::evaluate(root() / "reward-run/model", call("held_out.jsonl", kDrawn)); }),
              HasSubstr("expected a language model, to measure completions, got a reward model"));
}

TEST_F(EvaluationOfAModel, OfPairsIsByALanguageModelsLogProbs) {
  const auto of_run = run("dpo", "pairs.jsonl", "algorithm: {loss_type: simpo}\n", "dpo-run");
  const auto made = recipe::evaluate(root() / "dpo-run/model", call("pairs.jsonl"));
  EXPECT_EQ(made.values, "log-prob per token");
  expect_same(of_run, made);
}

TEST_F(EvaluationOfAModel, OfChoicesIsTheMostLikelyOne) {
  run("sft", "demonstrations.jsonl", "", "choices-run");
  write_questions();
  const auto made = recipe::evaluate(root() / "choices-run/model", call("questions.jsonl"));
  EXPECT_EQ(made.measured, MeasureKind::kChoices);
  ASSERT_EQ(made.measures.size(), 2U);
  EXPECT_EQ(made.measures[0].name, "acc");
  EXPECT_EQ(made.measures[0].sums, (std::vector<double>{1, 0}));
  EXPECT_EQ(made.measures[1].name, "acc_norm");
  EXPECT_EQ(made.measures[1].sums[0] + made.measures[1].sums[1], 1) << "one of the two questions";
  ASSERT_EQ(made.shown.size(), 2U);
  const auto& outputs = made.shown[0].outputs;
  ASSERT_EQ(outputs.size(), 2U);
  const bool by_character_short = outputs[0].value > outputs[1].value / 7;
  EXPECT_EQ(made.measures[1].sums[0], by_character_short ? 1 : 0);
}

// Every recipe of a language model measures all that `eval` does, each with data and sampling of its own.
TEST_F(EvaluationOfAModel, OfARunMayBeOfSeveralMeasures) {
  const std::string held_out = root() / "held_out.jsonl", pairs = root() / "pairs.jsonl",
                    demonstrations = root() / "demonstrations.jsonl", questions = write_questions();
  const std::string measures = fmt::format(
      "evaluation:\n"
      "  examples: 6\n"
      "  measure:\n"
      "    - {{measure: completions, name: drawn, data: {}, reward: {{rule: regex, pattern: \"^[0-4]\"}}, max_tokens: "
      "7, "
      "samples_per_prompt: 4, temperature: 1.0, examples: 0}}\n"
      "    - {{measure: perplexity, name: text, data: {}}}\n"
      "    - {{measure: pairs, name: preferred, data: {}}}\n"
      "    - {{measure: choices, data: {}}}\n",
      held_out, demonstrations, pairs, questions);
  for (const std::string name : {"sft", "dpo", "grpo"}) {
    SCOPED_TRACE(name);
    const std::string output = root() / (name + "-several"), model = output + "/model";
    const auto outcome = train_text(small_config(name, root().path()) + measures, output);
    const auto& of_run = outcome.last_evaluation;
    EvaluationCall drawn = call("held_out.jsonl", kDrawn);
    drawn.completion_tokens = 7;
    expect_within(of_run, "val/drawn/", recipe::evaluate(model, drawn));
    EvaluationCall first = call("demonstrations.jsonl", {{"examples", 6}});
    expect_within(of_run, "val/text/", recipe::evaluate(model, first));
    first.data = pairs;
    expect_within(of_run, "val/preferred/", recipe::evaluate(model, first));
    expect_within(of_run, "val/choices/", recipe::evaluate(model, call("questions.jsonl")));
    EXPECT_NE(of_run.at("val/text/loss"), outcome.first_evaluation.at("val/text/loss")) << "weights of now";
    EXPECT_EQ(metrics_of(output).back().at("val/choices/acc"), of_run.at("val/choices/acc"));
    EXPECT_EQ(lines_of(output + "/samples/choices/eval-000003.jsonl").size(), 4U);
    EXPECT_EQ(lines_of(output + "/samples/drawn/eval-000003.jsonl").size(), 8U * 4);
  }
}

// The first rows of the file are meant, also where some of them are left out; rows behind them are not looked at.
TEST_F(EvaluationOfAModel, OfARunsFirstExamplesIsOfTheRowsThatEvalMeasures) {
  const std::vector<std::string> rows = lines_of(root() / "demonstrations.jsonl");
  const std::string empty = R"({"prompt": "12=", "completion": ""})";
  write_text(root() / "first.jsonl",
             fmt::format("{0}\n{4}\n{1}\n{2}\n{3}\n{4}\n", rows.at(0), rows.at(1), rows.at(2), rows.at(3), empty));
  const auto outcome =
      train_text(small_config("sft", root().path()) + "evaluation: {examples: 4}\n", root() / "first-run",
                 {"data.eval=" + (root() / "first.jsonl"), "data.bad_rows=drop"});
  EvaluationCall asked = call("first.jsonl", {{"examples", 4}});
  asked.rows.drops_bad = true;
  const auto made = recipe::evaluate(root() / "first-run/model", asked);
  EXPECT_EQ(made.rows, 3);
  ASSERT_EQ(made.left_out.size(), 1U);
  EXPECT_EQ(made.left_out[0].rows, 1);
  expect_same(outcome.last_evaluation, made);
}

// A choice is written by the same template and variables in a run as by `eval`.
TEST_F(EvaluationOfAModel, OfARunsChoicesReadsTheTemplatesVariables) {
  const Scratch own("evaluation-variables");
  write_small_task(own.path());
  write_text(own / "start/chat_template.jinja",
             "{{ mark }}{% for message in messages %}{{ message['content'] }}{% endfor %}");
  write_text(own / "questions.jsonl", R"({"prompt": [{"role": "user", "content": "12="}], "choices": ["1", "2"], )"
                                      R"("answer": 0})"
                                      "\n");
  train_text(small_config("sft", own.path()) +
                 "evaluation: {measure: {measure: choices, data: " + (own / "questions.jsonl") + "}}\n",
             own / "run", {"models.policy.chat_template_kwargs={mark: '345'}"});
  EvaluationCall asked{.data = own / "questions.jsonl", .seed = 7, .chat_template_kwargs = {{"mark", "345"}}};
  const auto made = recipe::evaluate(own / "run/model", asked);
  const auto line = nlohmann::json::parse(lines_of(own / "run/samples/choices/eval-000003.jsonl").front());
  EXPECT_EQ(line.at("value").get<double>(), made.shown.at(0).outputs.at(0).value);
  asked.chat_template_kwargs = {{"mark", "6"}};
  EXPECT_NE(line.at("value").get<double>(), recipe::evaluate(own / "run/model", asked).shown.at(0).outputs.at(0).value);
}

// The recipe's own measure keeps its names beside another measure.
TEST_F(EvaluationOfAModel, OfARunsOwnMeasureKeepsItsNames) {
  const auto alone = run("sft", "demonstrations.jsonl", "", "alone-run");
  const auto both =
      run("sft", "demonstrations.jsonl",
          "evaluation: {measure: [perplexity, {measure: choices, data: " + write_questions() + "}]}\n", "both-run");
  EXPECT_EQ(both.at("val/loss"), alone.at("val/loss"));
  EXPECT_TRUE(both.contains("val/choices/acc")) << both.dump();
  const auto pairs = run("dpo", "pairs.jsonl", "evaluation: {measure: pairs}\n", "dpo-pairs-run");
  EXPECT_TRUE(pairs.contains("val/rewards/accuracies"));
  expect_within(pairs, "val/", recipe::evaluate(root() / "dpo-pairs-run/model", call("pairs.jsonl")));
}

TEST_F(EvaluationOfAModel, OfARunThatCannotBeIsRefused) {
  struct Refused {
    std::string recipe, measures, held_out, message;
  };
  const Refused cases[] = {
      {"reward", "completions", "held_out.jsonl",
       "[evaluation.measure] expected pairs with recipe reward, whose model gives scores alone, got completions; try "
       "leaving it out"},
      {"sft", "completions", "held_out.jsonl",
       "[evaluation.measure.reward] expected a reward that judges completions, got none; try reward: [{rule: exact}]"},
      {"sft", "choices", "",
       "[evaluation.measure] expected held-out data to measure, got neither data of its own nor data.eval; try "
       "{measure: choices, data: FILE}, or data.eval: FILE"},
      {"sft", "[pairs, {measure: pairs}]", "pairs.jsonl",
       "[evaluation.measure.1] expected a name of its own, as evaluation.measure.0 is measured too, got pairs; try "
       "{measure: pairs, name: NAME}"},
      {"sft", "recall", "pairs.jsonl",
       "impossible.yaml:6] expected measure to be one of completions, perplexity, pairs, choices, marked, steps, got "
       "'recall'"},
      {"sft", "{measure: choices, temperature: 1}", "pairs.jsonl",
       "impossible.yaml:6] expected no evaluation.measure.temperature with the measure choices, for which no "
       "completion is drawn and judged, got 1"},
      {"sft", "{measure: choices, dta: x}", "pairs.jsonl", "\"dta\""},
      {"sft", "choices", "demonstrations.jsonl",
       "demonstrations.jsonl:1 column choices] expected a list of texts, got none"}};
  for (const Refused& one : cases) {
    std::vector<std::string> sets;
    if (!one.held_out.empty()) sets.push_back("data.eval=" + (root() / one.held_out));
    const std::string measured = "evaluation: {measure: " + one.measures + "}\n";
    EXPECT_THAT(message_of([&] {
                  train_text(small_config(one.recipe, root().path()) + measured, root() / "impossible", sets);
                }),
                HasSubstr(one.message));
  }
  EXPECT_FALSE(fs::exists(root() / "impossible")) << "nothing has begun";
}

TEST_F(EvaluationOfAModel, WhatDoesNotFitIsNamed) {
  run("sft", "demonstrations.jsonl", "", "refused-run");
  const std::string model = root() / "refused-run/model";
  const auto message = [&](const EvaluationCall& asked) { return message_of([&] { recipe::evaluate(model, asked); }); };
  EXPECT_THAT(message(call("held_out.jsonl")), HasSubstr("expected a reward that judges completions, or rows with a"));
  EXPECT_THAT(message(call("demonstrations.jsonl", {{"temperature", 0.5}})),
              HasSubstr("[evaluation.temperature] expected nothing with the measure perplexity, for which"));
  auto greedy = kDrawn;
  greedy["temperature"] = 0.0;
  EXPECT_THAT(message(call("held_out.jsonl", greedy)),
              HasSubstr("[evaluation.samples_per_prompt] expected 1 with temperature 0, at which all samples of a"));
  write_text(root() / "long.jsonl", "{\"prompt\": \"1=\", \"completion\": \"2\"}\n{\"prompt\": \"" +
                                        std::string(40, '1') + "\", \"completion\": \"2\"}\n");
  EXPECT_THAT(message(call("long.jsonl")),
              HasSubstr("long.jsonl:2] expected at most 32 tokens, as the model has 32 positions, got 42"));
  EvaluationCall forced = call("demonstrations.jsonl");
  forced.measured = MeasureKind::kCompletions;
  EXPECT_THAT(message(forced), HasSubstr("[evaluation.reward] expected a reward that judges completions, got none"));
}

}  // namespace
}  // namespace collimate::test

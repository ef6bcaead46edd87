#include "collimate/recipe/evaluation/choices.h"

#include <algorithm>
#include <optional>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"

namespace collimate::recipe {
namespace {

using base::expectation;
using base::InputError;

constexpr const char* kChoices = "choices";

struct Question {
  std::vector<std::string> texts;
  std::vector<std::string> labels;  // none, or of each text
  size_t answer = 0;
};

std::vector<std::string> texts_of(const nlohmann::json& value, const std::string& where) {
  const auto is_text = [](const nlohmann::json& one) {
    return one.is_string() && !one.get_ref<const std::string&>().empty();
  };
  if (!value.is_array() || !std::ranges::all_of(value, is_text))
    throw InputError(expectation(where, "a list of texts, none of them empty", value.dump()));
  return value.get<std::vector<std::string>>();
}

// Letters count from A on where the data has no labels.
std::optional<size_t> place_of(const std::string& answer, const Question& question) {
  for (const auto* names : {&question.labels, &question.texts})
    if (const auto found = std::ranges::find(*names, answer); found != names->end())
      return static_cast<size_t>(found - names->begin());
  if (question.labels.empty() && answer.size() == 1 && answer[0] >= 'A') {
    const auto letter = static_cast<size_t>(answer[0] - 'A');
    if (letter < question.texts.size()) return letter;
  }
  return std::nullopt;
}

size_t answer_of(const text::Example& example, const Question& question, const OptionNames& names) {
  const nlohmann::json& truth = example.ground_truth;
  std::optional<size_t> place;
  if (truth.is_string()) place = place_of(truth.get<std::string>(), question);
  if (truth.is_number_integer() && truth >= 0 && truth < question.texts.size()) place = truth.get<size_t>();
  if (place) return *place;
  throw InputError(expectation(
      example.location.text() + " column answer",
      fmt::format("a number from 0 to {}, or the letter, label or text of a choice", question.texts.size() - 1),
      truth.is_null() ? "none" : truth.dump(), names.with_map("data", "{path: FILE, columns: {YOUR_COLUMN: answer}}")));
}

Question question_of(const text::Example& example, const OptionNames& names) {
  const std::string where = fmt::format("{} column {}", example.location.text(), kChoices);
  if (!has_choices(example)) throw InputError(expectation(where, "a list of texts", "none"));
  const nlohmann::json& column = example.extra.at(kChoices);
  Question question;
  question.texts = texts_of(column.is_object() ? column.value("text", nlohmann::json()) : column, where);
  if (column.is_object() && column.contains("label")) question.labels = texts_of(column.at("label"), where + " label");
  if (question.texts.size() < 2)
    throw InputError(expectation(where, "at least two choices", std::to_string(question.texts.size())));
  if (!question.labels.empty() && question.labels.size() != question.texts.size())
    throw InputError(expectation(where, fmt::format("{} labels, as there are texts", question.texts.size()),
                                 std::to_string(question.labels.size())));
  question.answer = answer_of(example, question, names);
  return question;
}

}  // namespace

bool has_choices(const text::Example& example) {
  const auto found = example.extra.find(kChoices);
  return found != example.extra.end() && !found->is_null();
}

Batch choice_rows(const text::Dataset& dataset, const text::Renderer& renderer, int64_t examples,
                  const OptionNames& names) {
  batch::TokenRows tokens;
  std::vector<int64_t> questions, prompt_tokens;
  std::vector<nlohmann::json> told;
  const int64_t count = examples > 0 ? std::min(examples, dataset.size()) : dataset.size();
  for (int64_t row = 0; row < count; ++row) {
    const text::Example& example = dataset.example(row);
    text::require_marked_turns(example, renderer, 0,
                               "a column prompt with the whole text, or " + names.with("chat_template", "plain"));
    const Question question = question_of(example, names);
    for (size_t i = 0; i < question.texts.size(); ++i) {
      text::RenderedTokens rendered = renderer.render_tokens(example.prompt, question.texts[i]);
      tokens.add(batch::make_uid("choice", "eval", row, 0, static_cast<int64_t>(i), 0), std::move(rendered.ids),
                 std::move(rendered.trainable));
      questions.push_back(batch::make_uid("prompt", "eval", row, 0, 0, 0));
      prompt_tokens.push_back(rendered.prompt_tokens);
      told.push_back({{"is_answer", i == question.answer}, {"characters", base::characters_in(question.texts[i])}});
    }
  }
  Batch rows = tokens.batch();
  rows.set(batch::kPromptUid, questions);
  rows.set(batch::kPromptTokens, prompt_tokens);
  rows.set_json(batch::kExample, std::move(told));
  return rows;
}

}  // namespace collimate::recipe

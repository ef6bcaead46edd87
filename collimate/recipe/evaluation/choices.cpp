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

// Returns the place of a choice by its label, its text, a letter or a number. Letters count from A on, where the data
// has no labels, and numbers in a text from 0.
std::optional<size_t> place_of(const std::string& answer, const Question& question) {
  for (const auto* names : {&question.labels, &question.texts})
    if (const auto found = std::ranges::find(*names, answer); found != names->end())
      return static_cast<size_t>(found - names->begin());
  if (question.labels.empty() && answer.size() == 1 && answer[0] >= 'A') {
    const auto letter = static_cast<size_t>(answer[0] - 'A');
    if (letter < question.texts.size()) return letter;
  }
  for (size_t place = 0; place < question.texts.size(); ++place)
    if (answer == std::to_string(place)) return place;
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

// Holds a question and its choices, each behind the prompt.
struct Rendered {
  Question question;
  std::vector<text::RenderedTokens> rows;

  int64_t longest() const {
    int64_t tokens = 0;
    for (const text::RenderedTokens& row : rows) tokens = std::max(tokens, static_cast<int64_t>(row.ids.size()));
    return tokens;
  }
};

Rendered rendered(const text::Example& example, const text::Renderer& renderer, const OptionNames& names) {
  Rendered made{question_of(example, names), {}};
  for (const std::string& text : made.question.texts) made.rows.push_back(renderer.render_tokens(example.prompt, text));
  return made;
}

std::string length_error(const text::Example& example, int64_t tokens, const rlhf::SourceOptions& options,
                         const OptionNames& names) {
  const bool cuts = options.long_rows == rlhf::LongRows::kTruncate;
  std::string remedy = names.with("long_rows", "drop");
  const bool known = options.model_tokens > 0 && !options.limit.empty();
  if (known && tokens <= options.model_tokens) remedy = fmt::format("a larger {}, or {}", options.limit, remedy);
  return expectation(example.location.text(),
                     fmt::format("at most {} tokens with each of the choices{}{}", options.max_tokens, options.reach,
                                 cuts ? ", for a question is never cut" : ""),
                     std::to_string(tokens), options.long_rows == rlhf::LongRows::kDrop ? "" : remedy);
}

// Makes rows of questions one after the other.
class Maker {
 public:
  void add(int64_t row, Rendered&& made) {
    for (size_t i = 0; i < made.rows.size(); ++i) {
      tokens_.add(batch::make_uid("choice", "eval", row, 0, static_cast<int64_t>(i), 0), std::move(made.rows[i].ids),
                  std::move(made.rows[i].trainable));
      questions_.push_back(batch::make_uid("prompt", "eval", row, 0, 0, 0));
      prompt_tokens_.push_back(made.rows[i].prompt_tokens);
      told_.push_back(
          {{"is_answer", i == made.question.answer}, {"characters", base::characters_in(made.question.texts[i])}});
    }
    ++used_;
  }

  int64_t used() const { return used_; }
  Batch batch() {
    Batch rows = tokens_.batch();
    rows.set(batch::kPromptUid, questions_);
    rows.set(batch::kPromptTokens, prompt_tokens_);
    rows.set_json(batch::kExample, std::move(told_));
    return rows;
  }

 private:
  batch::TokenRows tokens_;
  std::vector<int64_t> questions_, prompt_tokens_;
  std::vector<nlohmann::json> told_;
  int64_t used_ = 0;
};

void require_questions(const Maker& made, const ChoiceRows& out, const OptionNames& names) {
  if (made.used() > 0) return;
  const text::LeftOut& most = out.bad.rows > out.too_long.rows ? out.bad : out.too_long;
  throw InputError(expectation(names.of("data"), "at least one question to use",
                               fmt::format("none: all {} were left out", out.bad.rows + out.too_long.rows),
                               "a look at the first: " + most.first));
}

}  // namespace

bool has_choices(const text::Example& example) {
  const auto found = example.extra.find(kChoices);
  return found != example.extra.end() && !found->is_null();
}

ChoiceRows choice_rows(const text::Dataset& dataset, const text::Renderer& renderer, const rlhf::SourceOptions& options,
                       const OptionNames& names) {
  ChoiceRows out;
  Maker made;
  const bool stops = options.long_rows != rlhf::LongRows::kDrop;
  dataset.for_each([&](int64_t row, const text::Example& example) {
    if (stops && out.too_long.rows > 0) return;
    text::require_marked_turns(example, renderer, 0,
                               "a column prompt with the whole text, or " + names.with("chat_template", "plain"));
    try {
      Rendered question = rendered(example, renderer, names);
      const int64_t tokens = question.longest();
      if (options.max_tokens == 0 || tokens <= options.max_tokens)
        made.add(row, std::move(question));
      else
        out.too_long.add(length_error(example, tokens, options, names));
    } catch (const InputError& error) {
      const std::string reason = error.what(), place = example.location.text();  // a template does not know the row
      out.bad.add(reason.find(place) == std::string::npos ? fmt::format("{}: {}", place, reason) : reason);
    }
  });
  out.bad.require_none(options.bad_rows, made.used());
  if (stops && out.too_long.rows > 0) throw InputError(out.too_long.first);
  require_questions(made, out, names);
  out.rows = made.batch();
  return out;
}

}  // namespace collimate::recipe

#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/text/dataset.h"

namespace collimate::text {

// One row being turned into an example: columns are taken out of it, what is left becomes `extra`.
class RowReader {
 public:
  RowReader(Row&& row, const RowLocation& location) : row_(std::move(row)) { example_.location = location; }

  Example& example() { return example_; }
  bool has(const std::string& column) const {
    const auto found = row_.find(column);
    return found != row_.end() && !found->is_null();
  }
  // An empty text, list or object.
  bool holds_nothing(const std::string& column) const {
    const nlohmann::ordered_json& value = row_.at(column);
    return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_structured() && value.empty();
  }
  bool has_text(const std::string& column) const { return has(column) && row_.at(column).is_string(); }
  std::string where(const std::string& column) const { return example_.location.text() + " column " + column; }

  // Takes the first of the columns that is there.
  nlohmann::ordered_json take(std::initializer_list<const char*> columns) {
    for (const char* column : columns) {
      if (!has(column)) continue;
      nlohmann::ordered_json value = std::move(row_[column]);
      row_.erase(column);
      return value;
    }
    fail(*columns.begin(), "a value", "none");
  }

  // Notes what the row calls its prompt.
  void call_prompt(const std::string& column) { prompt_column_ = column; }
  const std::string& prompt_column() const { return prompt_column_; }

  // Leaves a column in `extra`.
  void put(const char* column, nlohmann::ordered_json value) { row_[column] = std::move(value); }

  std::string text(const nlohmann::ordered_json& value, const std::string& column) const {
    if (!value.is_string()) fail(column, "text", value.type_name());
    return value.get<std::string>();
  }
  std::string take_text(std::initializer_list<const char*> columns) { return text(take(columns), *columns.begin()); }

  [[noreturn]] void fail(const std::string& column, const std::string& expected, const std::string& got) const {
    throw base::InputError(base::expectation(where(column), expected, got));
  }

  Example finish() {
    if (example_.ground_truth.is_null()) find_ground_truth();
    example_.extra = nlohmann::json(row_);
    return std::move(example_);
  }

 private:
  void find_ground_truth() {
    for (const char* column : {"ground_truth", "answer", "solution", "label"}) {
      if (!has(column)) continue;
      example_.ground_truth = row_[column];
      return;
    }
  }

  std::string prompt_column_ = "prompt";
  Row row_;
  Example example_;
};

// The turns that system and history [[question, answer]…] put before a prompt (LLaMA-Factory, ms-swift).
Messages take_earlier_turns(RowReader& reader);
// Puts them before the prompt, unless it begins with them already. A text is then what the user says.
void add_earlier_turns(RowReader& reader);
// Where a text is no user's turn, no turn can stand before it.
void refuse_earlier_turns(const RowReader& reader, const std::string& shape);

// A prompt as text, messages or ids; an empty one is an error.
Prompt parse_prompt(const RowReader& reader, const nlohmann::ordered_json& value, const std::string& column);

// Takes an answer, a text or messages of which the last is the assistant's, from the first of the columns that is
// there. `prompt` becomes what the messages before it say.
Message take_answer(RowReader& reader, std::optional<Prompt>& prompt, std::initializer_list<const char*> columns);
Message as_answer(std::string text);

}  // namespace collimate::text

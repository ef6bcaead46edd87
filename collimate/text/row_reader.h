#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/text/dataset.h"

namespace collimate::text {

// Turns one row into an example: columns are taken out of the row, and those that are left become `extra`.
class RowReader {
 public:
  RowReader(Row&& row, const RowLocation& location) : row_(std::move(row)) { example_.location = location; }

  Example& example() { return example_; }
  bool has(const std::string& column) const {
    const auto found = row_.find(column);
    return found != row_.end() && !found->is_null();
  }
  // Returns whether the column has an empty text, list or object.
  bool holds_nothing(const std::string& column) const {
    const nlohmann::ordered_json& value = row_.at(column);
    return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_structured() && value.empty();
  }
  bool has_text(const std::string& column) const { return has(column) && row_.at(column).is_string(); }
  std::string where(const std::string& column) const { return example_.location.text() + " column " + column; }

  // Takes the first of the columns that is there. Throws InputError where none is.
  nlohmann::ordered_json take(std::initializer_list<const char*> columns) {
    for (const char* column : columns) {
      if (!has(column)) continue;
      nlohmann::ordered_json value = std::move(row_[column]);
      row_.erase(column);
      return value;
    }
    fail(*columns.begin(), "a value", "none");
  }

  // Notes which column the row has as its prompt.
  void call_prompt(const std::string& column) { prompt_column_ = column; }
  const std::string& prompt_column() const { return prompt_column_; }

  // Puts a column into the row, so that it becomes part of `extra`.
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

// Takes the columns system and history [[question, answer]…] and returns the turns that they put before a prompt
// (LLaMA-Factory, ms-swift).
Messages take_earlier_turns(RowReader& reader);
// Puts these turns before the prompt, unless it begins with them already. A prompt that is text becomes the user's
// turn.
void add_earlier_turns(RowReader& reader);
// Throws InputError for a column system or history in a row whose texts are no user's turns, before which no turn can
// stand.
void refuse_earlier_turns(const RowReader& reader, const std::string& shape);

// Reads a prompt as text, messages or ids. Throws InputError for an empty one.
Prompt parse_prompt(const RowReader& reader, const nlohmann::ordered_json& value, const std::string& column);

// Takes an answer from the first of the columns that is there: a text, or messages of which the last is the
// assistant's. The messages before it become `prompt`.
Message take_answer(RowReader& reader, std::optional<Prompt>& prompt, std::initializer_list<const char*> columns);
Message as_answer(std::string text);

}  // namespace collimate::text

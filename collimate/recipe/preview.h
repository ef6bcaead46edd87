#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/recipe/data.h"

namespace collimate::recipe {

// Holds the lengths of many rows, in tokens.
struct Lengths {
  int64_t shortest = 0, median = 0, longest = 0;

  COLLIMATE_FIELDS(shortest, median, longest)
};

// Describes consecutive tokens of a row that are all trained or all masked.
struct MaskRun {
  bool trained = false;
  int64_t tokens = 0;
  std::string text;  // special tokens included

  COLLIMATE_FIELDS(trained, tokens, text)
};

// Shows one data set as the model reads it: rendered, tokenized, masked.
struct DataPreview {
  std::string key;  // data.train
  rlhf::RowKind kind = rlhf::RowKind::kPrompt;
  int64_t rows = 0;
  Lengths prompt, row;
  int32_t largest_id = 0;
  std::vector<int64_t> masked;   // rows of which no token is trained; none for prompts, whose completions are trained
  std::vector<int64_t> unended;  // uncut rows whose last trained token ends no completion; none for prompts
  std::vector<int64_t> equal;    // pairs whose chosen and rejected are the same tokens
  std::vector<std::vector<MaskRun>> example;  // the first example's rows: one, or chosen and rejected
  std::vector<int32_t> last_ids;              // of those rows: the last trained token id, -1 for none
  nlohmann::json answer;                      // what the first example's rewards compare with; null for none
};

DataPreview preview(const std::string& key, const rlhf::RowSource& source, rlhf::RowKind kind,
                    const text::Tokenizer& tokenizer);

// Returns lines for a person, in which `tokenizer` names the tokens that end a completion.
std::vector<std::string> preview_lines(const DataPreview& data, const text::Tokenizer& tokenizer);
nlohmann::ordered_json to_json(const DataPreview& data);

// Returns the tokens that end a completion, as in "2 \"<eos>\"", or "nothing".
std::string stop_text(const text::Tokenizer& tokenizer);

}  // namespace collimate::recipe

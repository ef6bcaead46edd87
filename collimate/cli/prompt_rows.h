#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/recipe/check_rewards.h"
#include "collimate/recipe/left_out.h"
#include "collimate/recipe/option_names.h"
#include "collimate/rlhf/prompt/row_options.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/text/dataset.h"

namespace collimate::cli {

// A PromptFile is a file of rows whose prompts are to be completed.
struct PromptFile {
  std::string path;
  rlhf::RowChoices choices;
  recipe::OptionNames names;  // by which messages call "data", "bad_rows", "long_rows" and "chat_template"
};

// PromptRows are the rows of such a file. The constructor reads them without a model; render() then makes the prompts
// that a model completes. Rows that are left out or cut are counted and logged.
class PromptRows {
 public:
  // Reads the file. Throws InputError, with file and line, for a row without a prompt.
  explicit PromptRows(PromptFile file);

  // Renders the prompts for a model of so many positions that draws up to `drawn` tokens. Throws InputError, with file
  // and line, for a prompt that the model cannot read, or a conversation whose turns its template does not mark.
  void render(const text::Renderer& renderer, int64_t positions, int64_t drawn);

  const text::Dataset& dataset() const { return dataset_; }
  // These hold after render(): the token ids of the prompts that are used, in order, and the columns of one of them, as
  // rewards read them.
  const std::vector<std::vector<int32_t>>& ids() const { return ids_; }
  nlohmann::json columns(int64_t prompt) const { return source_->example(prompt); }
  // Reads the file again and returns the rows of the prompts that are used, unchanged.
  std::vector<text::Row> file_rows() const;
  // Counts the rows of the file that are not used, or only cut.
  const std::vector<recipe::LeftOutRows>& left_out() const { return left_out_; }
  // Returns the first recipe::kTriedRows rows, for a trial of rewards.
  recipe::TruthRows truths() const;

 private:
  PromptFile file_;
  text::Dataset dataset_;
  std::optional<rlhf::RowSource> source_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<recipe::LeftOutRows> left_out_;
};

// Logs, after `heading`, how many completions of how many prompts there are and how many rows have none or were cut.
// Logs nothing when all rows are used unchanged.
void log_left_out(const PromptRows& rows, int64_t completions, const std::string& heading);

}  // namespace collimate::cli

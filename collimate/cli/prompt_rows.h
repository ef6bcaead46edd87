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

// A file of rows with prompts that are to be completed.
struct PromptFile {
  std::string path;
  rlhf::RowChoices choices;
  recipe::OptionNames names;  // of "data", "bad_rows", "long_rows" and "chat_template"
};

// The rows of such a file, read before a model is there, and what a model completes of them. Those that are left out or
// cut are counted and logged.
class PromptRows {
 public:
  // InputError, with file and line, for what is no row with a prompt.
  explicit PromptRows(PromptFile file);

  // Renders them for a model that draws up to `drawn` tokens. InputError, with file and line, for a prompt that it
  // cannot read, or a conversation whose turns its template does not mark.
  void render(const text::Renderer& renderer, int64_t positions, int64_t drawn);

  const text::Dataset& dataset() const { return dataset_; }
  // After render(): the ids of the prompts that are used, in order; of one the columns that rewards see and its row.
  const std::vector<std::vector<int32_t>>& ids() const { return ids_; }
  const nlohmann::json& columns(int64_t prompt) const { return source_->example(prompt); }
  // As the file has them, of the prompts that are used.
  std::vector<text::Row> file_rows() const;
  // Rows of the file that are not used, or not whole.
  const std::vector<recipe::LeftOutRows>& left_out() const { return left_out_; }
  // The first ones, for a trial of rewards.
  recipe::TruthRows truths() const;

 private:
  PromptFile file_;
  text::Dataset dataset_;
  std::optional<rlhf::RowSource> source_;
  std::vector<std::vector<int32_t>> ids_;
  std::vector<recipe::LeftOutRows> left_out_;
};

// Says at the end, after a `heading`, how many completions of how many prompts there are, and how many rows have none
// or were cut. Says nothing where all are used as they stand.
void log_left_out(const PromptRows& rows, int64_t completions, const std::string& heading);

}  // namespace collimate::cli

#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/metrics.h"
#include "collimate/batch/batch.h"
#include "collimate/flow/executor.h"
#include "collimate/recipe/page.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {

// Returns the text with which rewards compare the completions of a row; "" where its data has none.
std::string expected_of(const nlohmann::json& example);

// Adds the metrics that the driver itself computes of an iteration's samples: rewards, lengths, tokens (verl's
// families). `seconds`: of the iteration.
void add_sample_metrics(const Batch& samples, double seconds, base::MetricsRecord& record);

// Writes a file at once, with a line per sample of the policy: {"step", "uid", "prompt", "completion", "reward",
// "expected", …}.
void write_samples(const Batch& samples, const text::Tokenizer& tokenizer, int64_t step,
                   const std::filesystem::path& path);

// Writes a file at once, with rows of data and what the model makes of them, a line each: {"step", "uid", "prompt",
// "measure", "target", "value"}; of pairs (rows 2i and 2i + 1) {…, "chosen", "chosen_value", "rejected",
// "rejected_value"}; with "model_answer" where the model was asked for one.
void write_measured(const Batch& rows, const RowNumber& number, bool pairs, const text::Tokenizer& tokenizer,
                    int64_t step, const std::filesystem::path& path);

// Returns the columns of a row of data as they stand beside a completion in a line of a file. A column whose name the
// line itself uses ("completion", "reward", …) is called data_NAME.
nlohmann::ordered_json kept_columns(const nlohmann::json& row);

}  // namespace collimate::recipe

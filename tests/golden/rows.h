#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"

namespace collimate::golden {

using nlohmann::json;

// One sample without padding, as our batches have it.
struct TokenRow {
  std::vector<int32_t> ids;
  std::vector<uint8_t> trainable;  // never the first token
  int64_t first_position = 0;      // of ids[0]: transformers counts the padding ahead of it
};

// 1, true.
bool is_true(const json& value);
// Entries of `values` where `mask` is true; all of them when the mask is null.
std::vector<float> masked(const json& values, const json& mask);
int64_t count_true(const json& mask);
// Places of row r's completion that the policy wrote: completion_mask without what `tool_mask` leaves out.
json policy_mask(const json& batch, size_t r);

// A row of padded arrays: tokens under the attention mask; trainable where `trained(t)`.
TokenRow unpadded_row(const json& ids, const json& attention, const std::vector<uint8_t>& trained);
// Rows of a batch with `input_ids`, `attention_mask` and either `labels` (-100: not trained) or `completion_mask`,
// whose names may carry a prefix ("chosen_"). Packed rows with `position_ids` are split where a position is 0.
std::vector<TokenRow> unpadded_rows(const json& batch, const std::string& prefix = "");
// Left-padded prompts and right-padded completions.
std::vector<TokenRow> prompt_completion_rows(const json& batch);

// First half chosen, second half rejected -> chosen, rejected, chosen, rejected …
std::vector<TokenRow> interleaved(const std::vector<TokenRow>& halves);
std::vector<TokenRow> interleaved(const std::vector<TokenRow>& chosen, const std::vector<TokenRow>& rejected);

Batch to_batch(const std::vector<TokenRow>& rows);
// Adds a per-token column from numbers at the trainable tokens of each row.
void set_at_trainable(Batch& rows, const Key<float>& key, const std::vector<std::vector<float>>& values);
using batch::at_trainable;

}  // namespace collimate::golden

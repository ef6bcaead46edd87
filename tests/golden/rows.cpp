#include "tests/golden/rows.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/token_rows.h"

namespace collimate::golden {
namespace {

bool has(const json& batch, const std::string& name) { return batch.contains(name) && !batch[name].is_null(); }

// Asks an [R, T] mask that a batch need not have.
bool is_null_or_true(const json& batch, const std::string& name, size_t r, size_t t) {
  return !has(batch, name) || is_true(batch[name][r][t]);
}

std::vector<uint8_t> trained_tokens(const json& batch, const std::string& prefix, size_t r, size_t tokens) {
  std::vector<uint8_t> out(tokens, 0);
  if (has(batch, prefix + "labels")) {
    const json& labels = batch[prefix + "labels"][r];
    for (size_t t = 0; t < tokens; ++t) out[t] = labels[t].get<int64_t>() != -100;
  } else if (has(batch, prefix + "completion_mask")) {
    const json& mask = batch[prefix + "completion_mask"][r];
    for (size_t t = 0; t < tokens; ++t) out[t] = is_true(mask[t]);
  }
  return out;
}

// A packed row holds several documents; each begins at position 0.
void split_documents(const TokenRow& row, const json& positions, std::vector<TokenRow>& out) {
  for (size_t t = 0; t < row.ids.size(); ++t) {
    if (t == 0 || positions[t] == 0) out.emplace_back();
    out.back().ids.push_back(row.ids[t]);
    out.back().trainable.push_back(out.back().ids.size() > 1 ? row.trainable[t] : 0);
  }
}

}  // namespace

bool is_true(const json& value) { return value.is_boolean() ? value.get<bool>() : value.get<double>() != 0.0; }

std::vector<float> masked(const json& values, const json& mask) {
  std::vector<float> out;
  for (size_t i = 0; i < values.size(); ++i)
    if (mask.is_null() || is_true(mask[i])) out.push_back(values[i].get<float>());
  return out;
}

json policy_mask(const json& batch, size_t r) {
  json mask = json::array();
  for (size_t t = 0; t < batch["completion_mask"][r].size(); ++t)
    mask.push_back(is_true(batch["completion_mask"][r][t]) && is_null_or_true(batch, "tool_mask", r, t));
  return mask;
}

int64_t count_true(const json& mask) {
  int64_t count = 0;
  for (const json& value : mask) count += is_true(value);
  return count;
}

TokenRow unpadded_row(const json& ids, const json& attention, const std::vector<uint8_t>& trained) {
  TokenRow row;
  for (size_t t = 0; t < ids.size(); ++t) {
    if (!attention.is_null() && !is_true(attention[t])) continue;
    if (row.ids.empty()) row.first_position = static_cast<int64_t>(t);
    row.ids.push_back(ids[t].get<int32_t>());
    row.trainable.push_back(row.ids.size() > 1 ? trained[t] : 0);
  }
  return row;
}

std::vector<TokenRow> unpadded_rows(const json& batch, const std::string& prefix) {
  const json& ids = batch.at(prefix + "input_ids");
  std::vector<TokenRow> rows;
  for (size_t r = 0; r < ids.size(); ++r) {
    const std::string mask = prefix + "attention_mask";
    const TokenRow row = unpadded_row(ids[r], has(batch, mask) ? batch[mask][r] : json(),
                                      trained_tokens(batch, prefix, r, ids[r].size()));
    if (has(batch, prefix + "position_ids"))
      split_documents(row, batch[prefix + "position_ids"][r], rows);
    else
      rows.push_back(row);
  }
  return rows;
}

std::vector<TokenRow> prompt_completion_rows(const json& batch) {
  std::vector<TokenRow> rows;
  for (size_t r = 0; r < batch.at("prompt_ids").size(); ++r) {
    const json& prompt = batch["prompt_ids"][r];
    const json& completion = batch["completion_ids"][r];
    TokenRow row = unpadded_row(prompt, batch["prompt_mask"][r], std::vector<uint8_t>(prompt.size(), 0));
    for (size_t t = 0; t < completion.size(); ++t) {
      if (!is_true(batch["completion_mask"][r][t])) continue;
      row.ids.push_back(completion[t]);
      row.trainable.push_back(is_null_or_true(batch, "tool_mask", r, t));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TokenRow> interleaved(const std::vector<TokenRow>& chosen, const std::vector<TokenRow>& rejected) {
  std::vector<TokenRow> out;
  for (size_t i = 0; i < chosen.size(); ++i) {
    out.push_back(chosen[i]);
    out.push_back(rejected.at(i));
  }
  return out;
}

std::vector<TokenRow> interleaved(const std::vector<TokenRow>& halves) {
  const auto middle = halves.begin() + static_cast<std::ptrdiff_t>(halves.size() / 2);
  return interleaved({halves.begin(), middle}, {middle, halves.end()});
}

Batch to_batch(const std::vector<TokenRow>& rows) {
  batch::TokenRows tokens;
  std::vector<int64_t> first;
  for (const TokenRow& row : rows) {
    tokens.add(std::ssize(first), row.ids, row.trainable);
    first.push_back(row.first_position);
  }
  Batch out = tokens.batch();
  out.set(batch::kFirstPosition, first);
  return out;
}

void set_at_trainable(Batch& rows, const Key<float>& key, const std::vector<std::vector<float>>& values) {
  std::vector<std::vector<float>> columns;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    std::vector<float> column;
    size_t next = 0;
    for (uint8_t trainable : rows.row(batch::kTrainable, r))
      column.push_back(trainable != 0 ? base::at(values, r).at(next++) : 0.F);
    if (next != base::at(values, r).size())
      throw base::InputError(base::expectation("golden", fmt::format("{} numbers of {} in row {}", next, key.name, r),
                                               std::to_string(base::at(values, r).size())));
    columns.push_back(std::move(column));
  }
  rows.set_ragged(key, columns);
}

}  // namespace collimate::golden

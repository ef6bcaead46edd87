#include "collimate/train/micro_batch.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::train {

using base::expectation;
using base::InputError;

std::vector<RowRange> split_rows(const Batch& rows, int64_t max_tokens, int64_t rows_per_unit) {
  if (rows.rows() % rows_per_unit != 0)
    throw InputError(
        expectation("train", fmt::format("a multiple of {} rows", rows_per_unit), std::to_string(rows.rows())));
  std::vector<RowRange> ranges;
  int64_t tokens = 0;
  for (int64_t r = 0; r < rows.rows(); r += rows_per_unit) {
    int64_t unit = 0;
    for (int64_t i = r; i < r + rows_per_unit; ++i) unit += rows.length(batch::kIds.name, i);
    if (ranges.empty() || tokens + unit > max_tokens) {
      ranges.push_back({r, r});
      tokens = 0;
    }
    ranges.back().end = r + rows_per_unit;
    tokens += unit;
  }
  return ranges;
}

PackedRows pack_rows(const Batch& rows) {
  PackedRows out;
  out.tokens.starts.push_back(0);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto ids = rows.row(batch::kIds, r);
    const auto trainable = rows.row(batch::kTrainable, r);
    if (ids.empty() || ids.size() != trainable.size() || trainable[0] != 0)
      throw InputError(
          expectation("train", fmt::format("row {} with tokens, one mask entry for each, the first not trainable", r),
                      fmt::format("{} tokens, {} mask entries", ids.size(), trainable.size())));
    const auto first = static_cast<int64_t>(out.tokens.ids.size());
    for (size_t t = 0; t < ids.size(); ++t) {
      out.tokens.ids.push_back(ids[t]);
      out.tokens.positions.push_back(static_cast<int32_t>(t));
      if (trainable[t] == 0) continue;
      out.predictors.push_back(first + static_cast<int64_t>(t) - 1);
      out.targets.push_back(ids[t]);
    }
    out.tokens.starts.push_back(static_cast<int32_t>(out.tokens.ids.size()));
    out.last_tokens.push_back(static_cast<int64_t>(out.tokens.ids.size()) - 1);
  }
  return out;
}

at::Tensor index_tensor(const std::vector<int64_t>& indices) {
  at::Tensor out = at::empty({static_cast<int64_t>(indices.size())}, at::kLong);
  std::copy(indices.begin(), indices.end(), out.data_ptr<int64_t>());
  return out;
}

Batch sorted_rows(const Batch& rows) {
  const std::string& key = rows.has(batch::kPairUid.name) ? batch::kPairUid.name : batch::kUid.name;
  if (!rows.has(key)) return rows;
  const std::vector<int64_t> uids = rows.all(Key<int64_t>{key});
  std::vector<int64_t> order(rows.rows());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return uids[a] < uids[b]; });
  return std::is_sorted(order.begin(), order.end()) ? rows : rows.gather(order);
}

}  // namespace collimate::train

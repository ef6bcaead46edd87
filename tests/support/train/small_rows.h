#pragma once

#include <ATen/TensorOperators.h>

#include <numeric>
#include <vector>

#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/train/learner.h"
#include "tests/support/model/tiny_weights.h"

// Rows that tests of learners train on, and a loss of them.
namespace collimate::train::small {

// Rows of 6 to 8 tokens, all but the first of them trained.
inline Batch short_rows(int64_t first, int64_t count) {
  batch::TokenRows rows;
  for (int64_t r = first; r < first + count; ++r) {
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < 6 + r % 3; ++t) ids.push_back(static_cast<int32_t>((r * 13 + t * t * 7 + t) % 37));
    rows.add(r, std::move(ids), 1);
  }
  return rows.batch();
}

// So many from `first` on of rows of these lengths.
inline Batch rows_of_lengths(const std::vector<int>& lengths, int64_t first, int64_t count) {
  std::vector<int64_t> uids(static_cast<size_t>(count));
  std::iota(uids.begin(), uids.end(), first);
  const auto all = model::testing::sequences(lengths, 37);
  const std::vector<std::vector<int32_t>> own(all.begin() + first, all.begin() + first + count);
  std::vector<std::vector<uint8_t>> trainable;
  for (const auto& row : own) trainable.emplace_back(row.size(), 1).front() = 0;
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set_ragged(batch::kIds, own);
  rows.set_ragged(batch::kTrainable, trainable);
  return rows;
}

// Raises the likelihood of the trained tokens.
inline Objective likelihood() {
  const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                       const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
  return {{}, loss};
}

}  // namespace collimate::train::small

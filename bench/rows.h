// These functions make the rows that benches train on.
#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/token_rows.h"

namespace collimate::bench {

// Returns the i-th token of a pseudo-random text, never one of the first three ids.
inline int32_t token(uint64_t i, int64_t vocabulary) {
  return static_cast<int32_t>(3 + (i * 2654435761U) % static_cast<uint64_t>(vocabulary - 3));
}

// Returns the rows [first, first + count), each of `tokens` tokens, of which all but the first are trained.
inline Batch sft_rows(int64_t first, int64_t count, int64_t tokens, int64_t vocabulary) {
  batch::TokenRows rows;
  for (int64_t i = first; i < first + count; ++i) {
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < tokens; ++t) ids.push_back(token(static_cast<uint64_t>(i * 1000 + t), vocabulary));
    rows.add(i, std::move(ids), 1);
  }
  return rows.batch();
}

}  // namespace collimate::bench

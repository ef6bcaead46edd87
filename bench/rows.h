// Rows that benches train on.
#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::bench {

// A token of a row that nobody wrote, none of the first three.
inline int32_t token(uint64_t i, int64_t vocabulary) {
  return static_cast<int32_t>(3 + (i * 2654435761U) % static_cast<uint64_t>(vocabulary - 3));
}

// Rows [first, first + count), each of so many tokens, of which all but the first are trained.
inline Batch sft_rows(int64_t first, int64_t count, int64_t tokens, int64_t vocabulary) {
  std::vector<int64_t> uids;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t i = first; i < first + count; ++i) {
    uids.push_back(i);
    ids.emplace_back();
    for (int64_t t = 0; t < tokens; ++t) ids.back().push_back(token(static_cast<uint64_t>(i * 1000 + t), vocabulary));
    trainable.emplace_back(tokens, 1);
    trainable.back()[0] = 0;
  }
  Batch out;
  out.set(batch::kUid, uids);
  out.set_ragged(batch::kIds, ids), out.set_ragged(batch::kTrainable, trainable);
  return out;
}

}  // namespace collimate::bench

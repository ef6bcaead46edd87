#pragma once

#include <span>

#include "collimate/model/model.h"

namespace collimate::model {

// Packs whole sequences that start at position 0.
inline TokenBatch pack_sequences(std::span<const std::span<const int32_t>> sequences) {
  TokenBatch batch;
  batch.starts.push_back(0);
  for (const auto& sequence : sequences) {
    batch.ids.insert(batch.ids.end(), sequence.begin(), sequence.end());
    for (size_t i = 0; i < sequence.size(); ++i) batch.positions.push_back(static_cast<int32_t>(i));
    batch.starts.push_back(static_cast<int32_t>(batch.ids.size()));
  }
  return batch;
}

}  // namespace collimate::model

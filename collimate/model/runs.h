#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::model {

// Rows of a batch as the attention kernel wants them. Training and scoring number the blocks of a scratch storage in
// order.
struct Runs {
  std::vector<int32_t> tables;  // block ids of all runs: 0, 1, …, and where a run continues another, that one's first
  std::vector<tensor::AttentionRun> runs;
  std::vector<tensor::Document> documents;
  // Where context ranks compute a batch together, the two above are of this rank's pieces, and these of all tokens:
  // rows of keys and values are the batch's.
  std::shared_ptr<const ContextCut> cut = nullptr;
  std::vector<tensor::AttentionRun> appended;
  int64_t blocks = 0;
  int64_t last_position = 0;
};
Runs scratch_runs(const TokenBatch& tokens);
Runs cached_runs(const TokenBatch& tokens, std::span<const std::vector<int32_t>> tables);

}  // namespace collimate::model

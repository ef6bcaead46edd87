#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::model {

// Describes the rows of a batch as the attention kernel wants them. Training and scoring number the blocks of a scratch
// storage in order (scratch_runs); generation uses the blocks of a cache (cached_runs).
struct Runs {
  std::vector<int32_t> tables;  // scratch block ids of all runs; a run that continues another shares that one's first
  std::vector<tensor::AttentionRun> runs;
  std::vector<tensor::Document> documents;
  // Where context ranks compute a batch together and gather keys and values, `runs` and `documents` are of this rank's
  // pieces, and `appended` of all tokens: rows of keys and values are those of the whole batch. Where they exchange
  // tokens for heads, runs and documents are those of the whole batch.
  std::shared_ptr<const ContextCut> cut = nullptr;
  std::vector<tensor::AttentionRun> appended;
  int64_t blocks = 0;
  int64_t last_position = 0;
};
Runs scratch_runs(const TokenBatch& tokens);
Runs cached_runs(const TokenBatch& tokens, std::span<const std::vector<int32_t>> tables);

}  // namespace collimate::model

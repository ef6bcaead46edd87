#pragma once

#include <memory>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/tape.h"

namespace collimate::model {

// Rows of a batch as the attention kernel wants them. Training and scoring number the blocks of a scratch storage in
// order.
struct Runs {
  std::vector<int32_t> tables;  // block ids of all runs: 0, 1, …, and where a run continues another, that one's first
  std::vector<tensor::AttentionRun> runs;
  std::vector<tensor::Document> documents;
  int64_t blocks = 0;
  int64_t last_position = 0;
};
Runs scratch_runs(const TokenBatch& tokens);
Runs cached_runs(const TokenBatch& tokens, std::span<const std::vector<int32_t>> tables);

struct ForwardRecord::Impl {
  struct Segment {
    tensor::Slot* input = nullptr;   // null for the embedding
    tensor::Slot* output = nullptr;  // null with Recompute::kFull
    std::unique_ptr<tensor::Tape> tape;
  };
  TokenBatch tokens;
  Runs runs;
  Recompute recompute = Recompute::kNone;
  std::unique_ptr<tensor::Arena> activations;
  std::vector<Segment> segments;
  // Where the arena goes back to.
  std::shared_ptr<std::vector<std::unique_ptr<tensor::Arena>>> pool;

  ~Impl() {
    segments.clear();
    if (pool == nullptr || activations == nullptr) return;
    activations->reset();
    pool->push_back(std::move(activations));
  }
};

}  // namespace collimate::model

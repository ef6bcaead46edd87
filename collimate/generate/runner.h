#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/routed_blocks.h"
#include "collimate/generate/sampler.h"
#include "collimate/generate/scheduler.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/model.h"
#include "collimate/tensor/exec.h"

namespace collimate::generate {

// One step draws this for a sequence: a token after its last one and, as long as the draws are the proposed tokens, one
// after each of those. So all but the last are proposed tokens, whose keys and values are in the cache.
struct DrawnFor {
  Sequence* sequence = nullptr;
  int32_t row = 0;                    // of the gathered hidden states: its last token's, before the proposed ones'
  std::span<const int32_t> proposed;  // that were run
  std::span<Drawn> drawn;             // at least one

  int32_t end_row() const { return row + 1 + static_cast<int32_t>(proposed.size()); }
};

// Carries out plans on a model: one forward over all runs, one gather of the rows that draw, logits in pieces of
// bounded size, draws in parallel. Owns the cache's memory. Reads sequences, never changes them. Not thread-safe.
class Runner {
 public:
  // `routed`: the experts that routers choose are kept beside the cache.
  Runner(model::Model& model, tensor::Exec exec, int64_t blocks, tensor::KvType kv_type, uint64_t run_seed,
         bool routed = false);

  // Blocks of every sequence in the plan must be in place. Copies the partial block of each fork. The result is valid
  // until the next call; runs that draw come in the plan's order, each followed by its forks.
  std::span<const DrawnFor> run(const StepPlan& plan);

  // From now on the most likely tokens of a draw are those after the sequence's penalties and form: Drawn::scores.
  void score_top() { draw_batch_.score_top(); }

  // Gives back the memory of the cache, whose blocks nobody needs any more, and of results; the next run takes it
  // again.
  void release();

  const model::KvCache& cache() const { return cache_; }
  const RoutedBlocks& routed() const { return routed_; }
  void copy_block(int32_t from, int32_t to) {
    cache_.copy_block(from, to);
    routed_.copy_block(from, to);
  }

 private:
  void build_batch(const StepPlan& plan);
  at::Tensor forward(std::span<const std::vector<int32_t>> tables);  // [T, H]
  void copy_partial_blocks(const StepPlan& plan);
  void list_draws(const StepPlan& plan);
  at::Tensor gather_rows(const at::Tensor& hidden);
  void draw(const at::Tensor& hidden);
  void draw_from(const at::Tensor& logits, std::span<DrawnFor> draws);

  model::Model& model_;
  tensor::Exec exec_;
  model::KvCache cache_;
  RoutedBlocks routed_;
  uint64_t run_seed_;

  model::TokenBatch batch_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<int32_t> rows_;  // [R] tokens of the batch after which something is drawn
  at::Tensor gathered_;        // at least [R, H]
  DrawBatch draw_batch_;
  std::vector<DrawnFor> draws_;
  std::vector<Drawn> drawn_;  // what `draws_` points at
};

}  // namespace collimate::generate

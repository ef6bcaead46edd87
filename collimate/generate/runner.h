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

// The tokens that one step draws for a sequence: one after the sequence's last token and, as long as draws equal the
// proposed tokens, one after each of these. So all drawn tokens but the last are proposed ones, whose keys and values
// are in the cache.
struct DrawnFor {
  Sequence* sequence = nullptr;
  int32_t row = 0;                    // of the gathered hidden states: that of its last token; proposed ones' follow
  std::span<const int32_t> proposed;  // proposed tokens that were run
  std::span<Drawn> drawn;             // at least one

  int32_t end_row() const { return row + 1 + static_cast<int32_t>(proposed.size()); }
};

// Carries out plans on a model, with one forward over all runs, one gather of the rows that draw, logits in pieces of
// bounded size and draws in parallel. Owns the cache's memory. Reads sequences, never changes them. Not thread-safe.
class Runner {
 public:
  // With `routed` the experts that routers choose are kept beside the cache.
  Runner(model::Model& model, tensor::Exec exec, int64_t blocks, tensor::KvType kv_type, uint64_t run_seed,
         bool routed = false);

  // Runs one step. Every sequence in the plan must have its blocks. Copies the partial block of each fork. Returns the
  // draws, valid until the next call: runs that draw come in the plan's order, each followed by its forks.
  std::span<const DrawnFor> run(const StepPlan& plan);

  // From now on the most likely tokens of a draw are chosen by their scores after the sequence's penalties and form
  // (see Drawn::scores).
  void score_top() { draw_batch_.score_top(); }

  // Gives back the memory of the cache, whose blocks must no longer be needed, and of results. The next run takes it
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
  std::vector<int32_t> rows_;  // [R] indices of the batch's tokens after which something is drawn
  at::Tensor gathered_;        // at least [R, H]
  DrawBatch draw_batch_;
  std::vector<DrawnFor> draws_;
  std::vector<Drawn> drawn_;  // that `draws_` points to
};

}  // namespace collimate::generate

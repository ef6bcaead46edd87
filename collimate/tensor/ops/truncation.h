#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/tensor/ops/sample.h"

namespace collimate::tensor {

// A row on its way through the stages: which tokens may still be drawn, and with what weight.
struct Candidates {
  const float* x = nullptr;  // [vocab] logits / temperature
  float* weights = nullptr;  // [vocab] exp(x - max); the most likely token's is 1
  int64_t vocab = 0;
  float max = 0;
  // The tokens left, once a stage that ranks has listed them (`listed`); before that all of the row are.
  bool listed = false;
  std::vector<int32_t> ids;
};

// Takes tokens out of a row's candidates: off its list or, where there is none yet, by a weight of zero. Weights of
// those that stay keep their bits.
struct TruncationStage {
  const char* name;
  bool (*active)(const SampleOptions& options, int64_t vocab);
  void (*apply)(const SampleOptions& options, Candidates& row);
};

// top_k, top_p (of the mass that top_k left), min_p: in the order in which they are applied.
std::span<const TruncationStage> truncation_stages();

// Runs the active stages in order; then the weights of all tokens that they took out are zero. `weights` as in
// Candidates.
void truncate_weights(const SampleOptions& options, const float* x, int64_t vocab, float max, float* weights);

}  // namespace collimate::tensor

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/tensor/ops/sample.h"

namespace collimate::tensor {

// Candidates are a row on its way through the stages: they say which tokens may still be drawn, and with what weight.
struct Candidates {
  const float* x = nullptr;  // [vocab] logits / temperature
  float* weights = nullptr;  // [vocab] exp(x - max); the most likely token's is 1
  int64_t vocab = 0;
  float max = 0;
  // Once a stage that ranks tokens has listed them (`listed`), `ids` are the tokens that are left; before that all are
  // left.
  bool listed = false;
  std::vector<int32_t> ids;
};

// A TruncationStage takes tokens out of a row's candidates: off the list or, where there is none yet, by a weight of
// zero. The weights of tokens that stay keep their bits.
struct TruncationStage {
  const char* name;
  bool (*active)(const SampleOptions& options, int64_t vocab);
  void (*apply)(const SampleOptions& options, Candidates& row);
};

// Returns the stages in the order in which they are applied: top_k, top_p (over the mass that top_k left), min_p.
std::span<const TruncationStage> truncation_stages();

// Runs the active stages in order, and then sets the weights of all tokens that they took out to zero. `weights` are
// those of Candidates.
void truncate_weights(const SampleOptions& options, const float* x, int64_t vocab, float max, float* weights);

}  // namespace collimate::tensor

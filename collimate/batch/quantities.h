#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// A forward pass can compute these quantities of a batch of R rows with M trainable tokens (in row order, without
// padding). Training computes them and losses read them.
namespace collimate::batch {

// The quantities that a loss needs.
struct QuantityNeeds {
  bool log_probs = true;       // [M] log p of each trainable token
  bool entropy = false;        // [M] entropy of the distribution that predicts each trainable token
  bool values = false;         // [M] output of the value head at the state before each trainable token
  bool row_scores = false;     // [R] output of the score head at each row's last token ahead of padding (padding.h)
  bool token_scores = false;   // [M] output of the score head at each trainable token
  bool log_collision = false;  // [M] log Σ p² over the vocabulary, of that distribution; no gradient goes through it
  // [M, K] log-probs of the K tokens that the teacher lists (teacher_keys.h) and [M] the log-prob of all other tokens
  // together, both at listed_temperature.
  bool listed = false;
  float listed_temperature = 1.0F;
  int64_t rows_per_unit = 1;  // rows that may not be split over micro-batches (2 for a preference pair)
};

// A quantity that was not asked for is an undefined tensor. In training each one is a leaf that requires a gradient,
// except log_collision.
struct Quantities {
  at::Tensor log_probs;
  at::Tensor entropy;
  at::Tensor values;
  at::Tensor row_scores;
  at::Tensor token_scores;
  at::Tensor log_collision;
  at::Tensor listed;
  at::Tensor rest;  // at least tensor::kLeastRest
};

// These counts are sums over all rows and ranks of one optimizer step. They are known before its first micro-batch.
struct GlobalCounts {
  double tokens = 0;  // trainable tokens
  double rows = 0;
  double chosen_tokens = 0;  // trainable tokens of rows 0, 2, 4, …, which are the chosen rows of preference pairs

  GlobalCounts operator*(double factor) const { return {tokens * factor, rows * factor, chosen_tokens * factor}; }
};

// A survey is a list of numbers that all micro-batches of an update, on all ranks, gave in a first pass, in the order
// of their rows (train::Objective::survey).
struct Survey {
  at::Tensor all;     // [N] fp32
  int64_t begin = 0;  // index in `all` of this micro-batch's first number
};
using Surveys = std::vector<Survey>;

}  // namespace collimate::batch

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// A forward can say these quantities of a batch of R rows with M trainable tokens (in row order, without padding): the
// vocabulary that training, which computes it, and losses, which read it, share.
namespace collimate::batch {

struct QuantityNeeds {
  bool log_probs = true;       // [M] log p of each trainable token
  bool entropy = false;        // [M] of the distribution it was drawn from
  bool values = false;         // [M] value head, at the state before each trainable token
  bool row_scores = false;     // [R] score head, at each row's last token
  bool log_collision = false;  // [M] log Σ p² over the vocabulary of that distribution: no gradient goes through it
  // [M, K] log-probs of the tokens that the teacher lists (teacher_keys.h), and [M] that of all others together, by the
  // distribution at this temperature.
  bool listed = false;
  float listed_temperature = 1.0F;
  int64_t rows_per_unit = 1;  // rows that may not be split over micro-batches (2 for a preference pair)
};

// Undefined where not asked for. In training each is a leaf that requires a gradient, but for log_collision.
struct Quantities {
  at::Tensor log_probs;
  at::Tensor entropy;
  at::Tensor values;
  at::Tensor row_scores;
  at::Tensor log_collision;
  at::Tensor listed;
  at::Tensor rest;  // as of tensor::kLeastRest
};

// Counts over all rows and ranks of one optimizer step, known before its first micro-batch.
struct GlobalCounts {
  double tokens = 0;  // trainable tokens
  double rows = 0;
  double chosen_tokens = 0;  // trainable tokens of every second row, from the first on: of pairs the chosen one

  GlobalCounts operator*(double factor) const { return {tokens * factor, rows * factor, chosen_tokens * factor}; }
};

// Numbers that all micro-batches of an update, on all ranks, have told of themselves, in the order of their rows.
struct Survey {
  at::Tensor all;     // [N] fp32
  int64_t begin = 0;  // where those of this micro-batch begin
};
using Surveys = std::vector<Survey>;

}  // namespace collimate::batch

#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/top_k.h"

namespace collimate::tensor {

struct SampleOptions {
  float temperature = 1.0F;  // 0: argmax, its log-prob at temperature 1
  int32_t top_k = 0;         // 0: all
  float top_p = 1.0F;        // smallest set of most likely tokens whose mass reaches top_p; at least one
  float min_p = 0.0F;        // keep p >= min_p * max p
};

struct Sampled {
  int32_t token = 0;
  float log_prob = 0;  // log softmax(logits / temperature)[token] before truncation; bit-equal to log_softmax_gather
};

// Draws one token of a row of logits by the inverse CDF of what top-k, then top-p (over what top-k left), then min-p
// leave (truncation.h), walked in id order; u in [0, 1). Ties in rank go to the lower id. GuardError when the row has
// NaN or no finite maximum.
Sampled sample_row(const float* logits, int64_t vocab, const SampleOptions& options, float u);

// The log-prob that sample_row gives with that token: the same bits, whatever the token was drawn from. GuardError as
// there.
float row_log_prob(const float* logits, int64_t vocab, float temperature, int32_t token);

// The `count` most likely tokens under the same distribution, whatever is drawn: the bits of log_softmax_gather's
// `top`. count in [1, min(kMostTopTokens, vocab)]. GuardError as there.
void row_top_log_probs(const float* logits, int64_t vocab, float temperature, int64_t count, TokenLogProb* out);

// rows of them in parallel: logits [rows, stride], options, u and out [rows].
void sample_rows(const Exec& exec, const float* logits, int64_t stride, int64_t rows, int64_t vocab,
                 const SampleOptions* options, const float* u, Sampled* out);

}  // namespace collimate::tensor

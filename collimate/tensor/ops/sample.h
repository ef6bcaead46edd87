#pragma once

#include <cstdint>
#include <span>

#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/top_k.h"

namespace collimate::tensor {

struct SampleOptions {
  float temperature = 1.0F;  // 0: greedy, with the log-prob at temperature 1
  int32_t top_k = 0;         // 0: all tokens stay
  float top_p = 1.0F;        // the smallest set of most likely tokens whose mass reaches top_p stays; at least one
  float min_p = 0.0F;        // tokens with p >= min_p * max p stay
};

struct Sampled {
  int32_t token = 0;
  float log_prob = 0;  // log softmax(logits / temperature)[token] before truncation: log_softmax_gather's bits
};

// Draws one token of a row of logits. Top-k, then top-p over the tokens that top-k left, then min-p truncate the row
// (truncation.h); the inverse CDF of the rest is walked in id order, with u in [0, 1). Of equal logits the lower id
// ranks first. Throws GuardError when the row has NaN or no finite maximum.
Sampled sample_row(const float* logits, int64_t vocab, const SampleOptions& options, float u);

// Returns the log-prob that sample_row gives with that token: the same bits, however the token was drawn. Throws
// GuardError as sample_row does.
float row_log_prob(const float* logits, int64_t vocab, float temperature, int32_t token);

// Writes the `count` most likely tokens before truncation, whichever token is drawn, with the bits of
// log_softmax_gather's `top`; count is in [1, min(kMostTopTokens, vocab)]. Throws GuardError as sample_row does.
void row_top_log_probs(const float* logits, int64_t vocab, float temperature, int64_t count, TokenLogProb* out);

// A LogitEdit changes one logit before temperature and truncation; it is computed in double and rounded once.
struct LogitEdit {
  enum class Kind : uint8_t {
    kForbid,    // -infinity
    kSubtract,  // x - a - b
    kPenalize,  // x / a above 0, else x * a
  };
  int32_t id = 0;  // ignored where the row has no such token
  Kind kind = Kind::kForbid;
  double a = 0, b = 0;
};
// Forbids, in a row in the host's memory, every token i except those whose bit i % 32 of word i / 32 is set.
void forbid_others(std::span<const uint32_t> allowed, std::span<float> logits);
// Applies edits to a row in the host's memory, in order.
void edit_logits(std::span<const LogitEdit> edits, std::span<float> logits);

// A draw says what is drawn after one row of logits, and where it goes.
struct Draw {
  const float* logits = nullptr;  // [vocab], on the device
  SampleOptions options;
  float u = 0;                             // in [0, 1)
  std::span<const LogitEdit> edits;        // of a copy of the row; log-probs are those of the row without edits
  Sampled* out = nullptr;                  // on the host
  std::span<TokenLogProb> top;             // in the host's memory; filled as by row_top_log_probs
  std::span<const uint32_t> allowed = {};  // applied to that copy after the edits: forbid_others(). Empty: all
  // Empty, or as long as `top`, in the host's memory. A token's score is its log-prob with the edits applied to it, not
  // normalised again: -infinity where the token is forbidden. `top` then has the tokens with the largest scores, of
  // equal ones the lower ids first, and beside each score the token's log-prob without edits.
  std::span<float> scores = {};
};
// Does what sample_row does for each draw, in parallel; the results are there on return. Throws GuardError as
// sample_row does.
void draw_rows(const Exec& exec, int64_t vocab, std::span<const Draw> draws);

}  // namespace collimate::tensor

#pragma once

#include <cstdint>
#include <span>

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

// A change of one logit ahead of temperature and truncation, computed in double and rounded once.
struct LogitEdit {
  enum class Kind : uint8_t {
    kForbid,    // -infinity
    kSubtract,  // x - a - b
    kPenalize,  // x / a above 0, else x * a
  };
  int32_t id = 0;  // passed over where the row has no such token
  Kind kind = Kind::kForbid;
  double a = 0, b = 0;
};
// Forbids every token i of a row in the host's memory but those whose bit i % 32 of word i / 32 is set.
void forbid_others(std::span<const uint32_t> allowed, std::span<float> logits);
// Edits a row in the host's memory, in order.
void edit_logits(std::span<const LogitEdit> edits, std::span<float> logits);

// A draw says what is drawn after one row of logits, and where it goes.
struct Draw {
  const float* logits = nullptr;  // [vocab], on the device
  SampleOptions options;
  float u = 0;                             // in [0, 1)
  std::span<const LogitEdit> edits;        // of a copy; log-probs are those of the logits as they are
  Sampled* out = nullptr;                  // on the host
  std::span<TokenLogProb> top;             // on the host: as row_top_log_probs
  std::span<const uint32_t> allowed = {};  // of that copy, after the edits: forbid_others(). Empty: all
  // As long as `top`, which then has the tokens with the largest scores, of equal ones the lower ids first, and each
  // one's own log-prob beside its score: its log-prob after the edits, -infinity where it is forbidden. On the host.
  std::span<float> scores = {};
};
// Does what sample_row does, in parallel; the results are there on return. GuardError as there.
void draw_rows(const Exec& exec, int64_t vocab, std::span<const Draw> draws);

}  // namespace collimate::tensor

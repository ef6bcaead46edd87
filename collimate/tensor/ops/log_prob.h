#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/listed.h"
#include "collimate/tensor/ops/top_k.h"

namespace collimate::tensor {

// A RowNormalizer normalises the softmax of one row: it holds the maximum, and the log of the sum of exp(x - max). The
// sum runs over 8 fixed chunks of the vocabulary, which a balanced tree adds. log p(i) = (x[i] - max) - log_sum.
// Sampling, scoring and training all use it, so that a token's log-prob has the same bits in all three.
struct RowNormalizer {
  float max = 0;
  float log_sum = 0;
  float log_prob(float logit) const { return (logit - max) - log_sum; }
  float logsumexp() const { return max + log_sum; }
};
// Returns the normaliser of a row. Where `weights` [vocab] is given, writes exp(logit - max) of each token to it.
RowNormalizer row_normalizer(const float* logits, int64_t vocab, float* weights = nullptr);

// Writes the `count` most likely tokens of a row [vocab] that has this normaliser, most likely first, of equal logits
// the lower id first; count is in [1, min(kMostTopTokens, vocab)].
void top_log_probs(const float* logits, int64_t vocab, const RowNormalizer& norm, int64_t count, TokenLogProb* out);

// Returns the factor that multiplies logits: 1 / temperature in fp32, or 1 for temperature 0 (greedy).
float inverse_temperature(float temperature);
// Computes out[i] = logits[i] * factor; copies them when factor is 1. out may be logits.
void scale_logits(const float* logits, int64_t vocab, float factor, float* out);

// Turns logits x [rows, vocab] into cap tanh(x / cap), in place.
void soft_cap(const Exec& exec, float cap, int64_t rows, int64_t vocab, float* x);

struct LogProbHead {
  const float* hidden = nullptr;  // [rows, panels.k]
  int64_t hidden_stride = 0;
  int64_t rows = 0;
  const LinearPanels* head = nullptr;  // [vocab, hidden]
  const float* bias = nullptr;         // [vocab] or null
  float temperature = 1.0F;
  const int32_t* targets = nullptr;  // [rows]; InputError outside [0, vocab)
  float softcap = 0;                 // cap of logits (soft_cap), applied before the temperature; 0: none
  // The head may have only a part of the vocabulary: its rows are the tokens from `first` on, in whole chunks of the
  // softmax's sums, and `whole` is the size of the whole vocabulary. 0: the head has all of it.
  int64_t first = 0;
  int64_t whole = 0;

  int64_t vocabulary() const { return whole > 0 ? whole : head->n; }
};

struct LogProbOutput {
  float* log_prob = nullptr;    // [rows] log softmax(logits / temperature)[target]
  float* logsumexp = nullptr;   // [rows] or null
  float* entropy = nullptr;     // [rows] or null, of softmax(logits / temperature), nats
  int32_t* argmax = nullptr;    // [rows] or null; of equal logits the lower id
  TokenLogProb* top = nullptr;  // [rows, top_count] or null: see top_log_probs
  int64_t top_count = 0;
  // The next fields are about the listed tokens. Where `likely` [rows, count] is given, these are the most likely ones,
  // and their ids are written to it.
  ListedTokens listed;
  int32_t* likely = nullptr;
  float* listed_log_prob = nullptr;  // [rows, count] or null, with `rest`
  float* rest = nullptr;             // [rows] log-prob of all others together
  // These are for the backward, or null:
  float* max = nullptr;      // [rows] of the row's normaliser
  float* log_sum = nullptr;  // [rows], given together with max
  float* logits = nullptr;   // [rows, vocab] logits / temperature
};

// Returns the most bytes of logits that log_softmax_gather holds in the calling thread's working memory, which is kept
// between calls (scratch_need.h has all of that).
int64_t log_prob_scratch_bytes(int64_t vocab);

// Computes log-probs and what else `out` asks for. Without `out.logits`, logits exist only for a block of rows at a
// time (about 16 MiB).
void log_softmax_gather(const Exec& exec, const LogProbHead& head, const LogProbOutput& out);

// A head that has only a part of the vocabulary takes steps, between which the caller combines the parts. In the first
// step each part gives logits / temperature; their maximum and its id, of equal ones the lower; and the target's logit,
// 0 where another part has the target.
struct PartLogits {
  float* logits = nullptr;  // [rows, n]
  float* max = nullptr;     // [rows], as argmax and target
  int32_t* argmax = nullptr;
  float* target = nullptr;
};
void part_logits(const Exec& exec, const LogProbHead& head, const PartLogits& out);
// The second step takes the maxima [rows] over all parts. It writes sums [rows, shape::kVocabChunks], those of the
// part's own chunks and 0 for the others: sums of exp(x - max), or, with `log_sum` [rows], those from which
// entropy_of_sums() takes the entropy.
void part_sums(const Exec& exec, const LogProbHead& head, const float* logits, const float* max, const float* log_sum,
               float* sums);
// The last step runs on the host, with the sums of all chunks of one row, which it overwrites.
RowNormalizer normalizer_of_sums(float max, float* sums);
float entropy_of_sums(float log_sum, float* sums);

// LogProbForward is what log_softmax_gather wrote for the same head. Whatever is null is computed again.
struct LogProbForward {
  const float* max = nullptr;
  const float* log_sum = nullptr;  // [rows]; null exactly when max is
  const float* entropy = nullptr;
  const float* logits = nullptr;
};

struct LogProbGrad {
  const float* dlog_prob = nullptr;  // [rows]
  const float* dentropy = nullptr;   // [rows] or null
  const float* w = nullptr;          // the head's weight row-major [vocab, hidden]; needed for dhidden
  float* dhidden = nullptr;          // [rows, hidden] or null
  int64_t dhidden_stride = 0;
  bool accumulate = false;  // dhidden += instead of =
  float* dw = nullptr;      // [vocab, hidden] += or null
  float* dbias = nullptr;   // [vocab] += or null
  ListedGradient listed;    // its count is 0 where no tokens were listed
};

// Adds up the gradients of LogProbGrad, walking the vocabulary in pieces: d logits exist only for a piece at a time
// (about 16 MiB). Where the head has a part of the vocabulary, `forward` must hold the normaliser and, where dentropy
// is given, the entropy; dhidden is then only this part's share.
void log_softmax_gather_backward(const Exec& exec, const LogProbHead& head, const LogProbGrad& grad,
                                 const LogProbForward& forward = {});

}  // namespace collimate::tensor

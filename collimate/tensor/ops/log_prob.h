#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/listed.h"
#include "collimate/tensor/ops/top_k.h"

namespace collimate::tensor {

// The softmax normaliser of one row: max, and log of the sum of exp(x - max). The sum runs over 8 fixed chunks of the
// vocabulary combined by a balanced tree. log p(i) = (x[i] - max) - log_sum. The one function that sampling, scoring
// and training use, so a token's log-prob has the same bits in all three.
struct RowNormalizer {
  float max = 0;
  float log_sum = 0;
  float log_prob(float logit) const { return (logit - max) - log_sum; }
  float logsumexp() const { return max + log_sum; }
};
// `weights` [vocab], where wanted: exp(logit - max) of each.
RowNormalizer row_normalizer(const float* logits, int64_t vocab, float* weights = nullptr);

// The `count` most likely tokens of a row [vocab] with that normaliser, most likely first, of equal logits the lower
// id; count in [1, min(kMostTopTokens, vocab)].
void top_log_probs(const float* logits, int64_t vocab, const RowNormalizer& norm, int64_t count, TokenLogProb* out);

// The factor that logits are multiplied with: 1 / temperature in fp32; 1 for temperature 0 (greedy).
float inverse_temperature(float temperature);
// out[i] = logits[i] * factor; a copy when factor is 1. out may be logits.
void scale_logits(const float* logits, int64_t vocab, float factor, float* out);

// Logits x [rows, vocab] become cap tanh(x / cap), in place.
void soft_cap(const Exec& exec, float cap, int64_t rows, int64_t vocab, float* x);

struct LogProbHead {
  const float* hidden = nullptr;  // [rows, panels.k]
  int64_t hidden_stride = 0;
  int64_t rows = 0;
  const LinearPanels* head = nullptr;  // [vocab, hidden]
  const float* bias = nullptr;         // [vocab] or null
  float temperature = 1.0F;
  const int32_t* targets = nullptr;  // [rows]; InputError outside [0, vocab)
  float softcap = 0;                 // of logits, ahead of the temperature (soft_cap); 0: none
  // The head may be a part of the vocabulary: the rows from `first` on, whole chunks of its sums, of so many. 0: all.
  int64_t first = 0;
  int64_t whole = 0;

  int64_t vocabulary() const { return whole > 0 ? whole : head->n; }
};

struct LogProbOutput {
  float* log_prob = nullptr;    // [rows] log softmax(logits / temperature)[target]
  float* logsumexp = nullptr;   // [rows] or null
  float* entropy = nullptr;     // [rows] or null, of softmax(logits / temperature), nats
  int32_t* argmax = nullptr;    // [rows] or null, ties to the lower id
  TokenLogProb* top = nullptr;  // [rows, top_count] or null: see top_log_probs
  int64_t top_count = 0;
  // These are of the listed tokens, which are the most likely ones where `likely` [rows, count] is given: it gets them.
  ListedTokens listed;
  int32_t* likely = nullptr;
  float* listed_log_prob = nullptr;  // [rows, count] or null, with `rest`
  float* rest = nullptr;             // [rows] log-prob of all others
  // These are for the backward, or null:
  float* max = nullptr;      // [rows] of the row's normaliser
  float* log_sum = nullptr;  // [rows]
  float* logits = nullptr;   // [rows, vocab] logits / temperature
};

// Working memory of the calling thread in the two functions below, kept between calls.
int64_t log_prob_scratch_bytes(int64_t vocab);

// Without `logits` they exist for a block of rows at a time only (about 16 MiB).
void log_softmax_gather(const Exec& exec, const LogProbHead& head, const LogProbOutput& out);

// A head that is a part of the vocabulary does it in steps, between which the parts are brought together. First, by
// each part: logits / temperature; their maximum and its id, ties to the lower one; the target's, 0 where another part
// has it.
struct PartLogits {
  float* logits = nullptr;  // [rows, n]
  float* max = nullptr;     // [rows], as the next two
  int32_t* argmax = nullptr;
  float* target = nullptr;
};
void part_logits(const Exec& exec, const LogProbHead& head, const PartLogits& out);
// Then, with the maxima [rows] of all parts: sums [rows, shape::kVocabChunks] of the chunks that it has, 0 of the
// others: of exp(x - max), or with `log_sum` [rows] those that make the entropy.
void part_sums(const Exec& exec, const LogProbHead& head, const float* logits, const float* max, const float* log_sum,
               float* sums);
// At last, of sums of all chunks, on the host: they are used up.
RowNormalizer normalizer_of_sums(float max, float* sums);
float entropy_of_sums(float log_sum, float* sums);

// log_softmax_gather wrote these for the same head. Whatever is null is computed again.
struct LogProbForward {
  const float* max = nullptr;
  const float* log_sum = nullptr;  // null exactly when max is
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

// Walks the vocabulary in chunks: d logits exist for a chunk at a time only (about 16 MiB). With a part of it `forward`
// has the normaliser and, where dentropy is given, the entropy; dhidden is what the part adds to it.
void log_softmax_gather_backward(const Exec& exec, const LogProbHead& head, const LogProbGrad& grad,
                                 const LogProbForward& forward = {});

}  // namespace collimate::tensor

#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

struct LogProbHead;
struct SoftmaxGradient;
struct VocabularyRange;

// ListedTokens are some tokens of each row, such as those that a teacher finds most likely. All other tokens of the
// vocabulary together are one more outcome, the rest, so that probabilities sum to one however many are listed.
struct ListedTokens {
  int64_t count = 0;             // of a row
  const int32_t* ids = nullptr;  // [rows, count] ids in the whole vocabulary, ascending in each row
};

// The log-prob of the rest is at least this. It is this where all tokens are listed, so that the rest is empty.
constexpr float kLeastRest = -80.0F;

// Throws InputError unless each row's ids are in the vocabulary, ascending, and each named once.
void check_listed(const ListedTokens& listed, int64_t rows, int64_t vocabulary);
// Writes the ids of the `count` largest logits x [n] of a row, ascending by id, where x[0] has id `first`; of equal
// logits the lower id wins.
void largest_ids(const float* x, int64_t n, int64_t first, int64_t count, int32_t* ids);
// Adds exp(x - max) over a part of a row without its listed tokens to the sums of chunks, as part_sums does. The logits
// are changed meanwhile, and restored.
void add_rest_sums(const ListedTokens& listed, int64_t row, float* x, const VocabularyRange& range, float max,
                   float* sums);
// Returns the log-prob of the rest from the sums of all chunks, which it overwrites.
float rest_of_sums(float log_sum, float* sums);

// PartRows are the logits [rows, n] of a part of a head, and the maxima [rows] over all parts.
struct PartRows {
  float* logits = nullptr;
  const float* max = nullptr;
};
struct PartListed {
  float* logits = nullptr;     // [rows, count] logits of the listed tokens, 0 for those of another part
  float* rest_sums = nullptr;  // [rows, shape::kVocabChunks] sums as of part_sums, without the listed tokens
};
void part_listed(const Exec& exec, const LogProbHead& head, const ListedTokens& listed, const PartRows& part,
                 const PartListed& out);
// PartLikely takes the `count` largest logits of a part, as [rows, 2 count] with `stride`: the logits, and behind them
// their ids as floats. Places for which the part has no token get minus infinity and -1.
struct PartLikely {
  int64_t count = 0;
  float* out = nullptr;
  int64_t stride = 0;
};
void part_likely(const Exec& exec, const LogProbHead& head, const float* logits, const PartLikely& out);

// ListedGradient is the gradient of the log-probs of listed tokens and of the rest, for whole heads and for parts of
// one.
struct ListedGradient {
  ListedTokens tokens;
  const float* dlog_prob = nullptr;  // [rows, count]
  const float* drest = nullptr;      // [rows]
  const float* rest = nullptr;       // [rows] as log_softmax_gather wrote it
};
// Writes d logits of a row's part that begins with id `first`. `g` is the row's gradient without listed tokens.
void listed_gradient(const ListedGradient& listed, int64_t row, int64_t first, const SoftmaxGradient& g);

}  // namespace collimate::tensor

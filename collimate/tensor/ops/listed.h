#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

struct LogProbHead;
struct SoftmaxGradient;
struct VocabularyRange;

// Some tokens of each row, as the most likely ones by a teacher. All others of the vocabulary are one outcome more, the
// rest, so that probabilities sum to one whatever their number.
struct ListedTokens {
  int64_t count = 0;             // of a row
  const int32_t* ids = nullptr;  // [rows, count] of the whole vocabulary, ascending in each row
};

// The log-prob of a rest is at least this: of none, where all tokens are listed, too.
constexpr float kLeastRest = -80.0F;

// InputError unless each row's ids are of the vocabulary, each once and ascending.
void check_listed(const ListedTokens& listed, int64_t rows, int64_t vocabulary);
// The ids of the `count` largest of a row's logits [n], of which the first has id `first`; of equal ones the lower id.
// Ascending by id.
void largest_ids(const float* x, int64_t n, int64_t first, int64_t count, int32_t* ids);
// Adds exp(x - max) of a row's part, but of its listed tokens, to the sums of chunks, as part_sums does. Logits are
// changed meanwhile.
void add_rest_sums(const ListedTokens& listed, int64_t row, float* x, const VocabularyRange& range, float max,
                   float* sums);
// The rest's log-prob by sums of all chunks, which are used up.
float rest_of_sums(float log_sum, float* sums);

// Logits of a part of a head, [rows, n], and the maxima [rows] of all parts.
struct PartRows {
  float* logits = nullptr;
  const float* max = nullptr;
};
struct PartListed {
  float* logits = nullptr;     // [rows, count] of the listed tokens, 0 where another part has them
  float* rest_sums = nullptr;  // [rows, shape::kVocabChunks] as of part_sums, without the listed tokens
};
void part_listed(const Exec& exec, const LogProbHead& head, const ListedTokens& listed, const PartRows& part,
                 const PartListed& out);
// The `count` largest logits of a part, as [rows, 2 count] with `stride`: the logits, and behind them the ids as
// floats. Where it has fewer, minus infinity and -1.
struct PartLikely {
  int64_t count = 0;
  float* out = nullptr;
  int64_t stride = 0;
};
void part_likely(const Exec& exec, const LogProbHead& head, const float* logits, const PartLikely& out);

// The gradient of listed tokens' log-probs and of the rest's, of whole heads and parts of one.
struct ListedGradient {
  ListedTokens tokens;
  const float* dlog_prob = nullptr;  // [rows, count]
  const float* drest = nullptr;      // [rows]
  const float* rest = nullptr;       // [rows] as forward gave it
};
// d logits of a row's part that begins with id `first`. `g` is the row's gradient without listed tokens.
void listed_gradient(const ListedGradient& listed, int64_t row, int64_t first, const SoftmaxGradient& g);

}  // namespace collimate::tensor

#pragma once

#include <cstdint>

#include "collimate/shape/vocabulary.h"
#include "collimate/tensor/kernels/table.h"

namespace collimate::tensor {

constexpr int64_t kCdfBlock = 128;  // elements whose sum the inverse CDF skips at once

// A VocabularyRange is a part of a row's logits: tokens [first, first + count) of the vocabulary, beginning with a
// chunk.
struct VocabularyRange {
  int64_t first = 0;
  int64_t count = 0;
  int64_t vocab = 0;
};

// A SoftmaxGradient turns one row's logits into d logits, over a part of the vocabulary.
struct SoftmaxGradient {
  const float* logits = nullptr;  // logits / temperature
  float* out = nullptr;           // may be `logits`
  int64_t vocab = 0;              // tokens of the part
  float max = 0;
  float log_sum = 0;
  int64_t target = 0;  // index in the part; outside [0, vocab) when another part has the target
  float dlog_prob = 0;
  float dentropy = 0;
  float entropy = 0;  // used when dentropy is not 0
  float factor = 1;   // 1 / temperature
  float softcap = 0;  // cap of the logits before they were multiplied by `factor`; 0: none
};

struct SoftmaxKernels {
  // Where `e` is given, e[i] = exp(x[i] - max) is written to it; e may be x.
  void (*normalizer)(const float* x, int64_t vocab, float* max, float* log_sum, float* e);
  // Returns the entropy in nats of softmax(x), given its normaliser.
  float (*entropy)(const float* x, int64_t vocab, float max, float log_sum);
  // part_max and part_sums take a part x [range.count] of a row. part_sums adds the sum of each of the part's chunks to
  // sums[number of the chunk in the row]: of exp(x - max) or, with `log_sum`, of the terms whose total entropy()
  // subtracts.
  float (*part_max)(const float* x, int64_t count);
  void (*part_sums)(const float* x, const VocabularyRange& range, float max, const float* log_sum, float* sums);
  float (*log)(float x);
  void (*scale)(const float* x, int64_t vocab, float factor, float* out);
  void (*soft_cap)(float cap, int64_t count, float* x);  // x = cap tanh(x / cap)
  void (*gradient)(const SoftmaxGradient& g);
  // Computes sums[b] = the sum of e over [128 b, 128 (b + 1)).
  void (*block_sums)(const float* e, int64_t vocab, float* sums);
};

// Returns the sum of the chunks' sums [kVocabChunks] by a balanced tree, which overwrites them.
static inline float sum_of_vocab_chunks(float* sums) {
  for (int step = 1; step < shape::kVocabChunks; step *= 2) {
    for (int c = 0; c < shape::kVocabChunks; c += 2 * step) sums[c] += sums[c + step];
  }
  return sums[0];
}

COLLIMATE_KERNEL_TABLE(SoftmaxKernels, kSoftmax, softmax_kernels);

}  // namespace collimate::tensor

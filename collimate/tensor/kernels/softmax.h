#pragma once

#include <cstdint>

#include "collimate/shape/vocabulary.h"
#include "collimate/tensor/kernels/table.h"

namespace collimate::tensor {

constexpr int64_t kCdfBlock = 128;  // elements whose sum the inverse CDF steps over at once

// A part of a row's logits: places [first, first + count) of the vocabulary, beginning with a chunk.
struct VocabularyRange {
  int64_t first = 0;
  int64_t count = 0;
  int64_t vocab = 0;
};

// One row's gradient over a part of the vocabulary: logits -> d logits.
struct SoftmaxGradient {
  const float* logits = nullptr;  // logits / temperature
  float* out = nullptr;           // may be `logits`
  int64_t vocab = 0;              // of the part
  float max = 0;
  float log_sum = 0;
  int64_t target = 0;  // place in the part; outside [0, vocab) when the target is in another one
  float dlog_prob = 0;
  float dentropy = 0;
  float entropy = 0;  // used when dentropy is not 0
  float factor = 1;   // 1 / temperature
  float softcap = 0;  // of the logits before they were multiplied by it; 0: none
};

struct SoftmaxKernels {
  // An `e` that is given gets e[i] = exp(x[i] - max) too; e may be x.
  void (*normalizer)(const float* x, int64_t vocab, float* max, float* log_sum, float* e);
  // Entropy in nats of softmax(x), given its normaliser.
  float (*entropy)(const float* x, int64_t vocab, float max, float log_sum);
  // The same of a part x [range.count]: its maximum, and the sums of its chunks, each added to sums[chunk of the
  // whole]: of exp(x - max), and with `log_sum` those of which entropy() subtracts the total.
  float (*part_max)(const float* x, int64_t count);
  void (*part_sums)(const float* x, const VocabularyRange& range, float max, const float* log_sum, float* sums);
  float (*log)(float x);
  void (*scale)(const float* x, int64_t vocab, float factor, float* out);
  void (*soft_cap)(float cap, int64_t count, float* x);  // x = cap tanh(x / cap)
  void (*gradient)(const SoftmaxGradient& g);
  // sums[b] = sum of e over [128 b, 128 (b + 1)).
  void (*block_sums)(const float* e, int64_t vocab, float* sums);
};

// The chunks' sums [kVocabChunks] in a balanced tree; they are used up.
static inline float sum_of_vocab_chunks(float* sums) {
  for (int step = 1; step < shape::kVocabChunks; step *= 2) {
    for (int c = 0; c < shape::kVocabChunks; c += 2 * step) sums[c] += sums[c + step];
  }
  return sums[0];
}

COLLIMATE_KERNEL_TABLE(SoftmaxKernels, kSoftmax, softmax_kernels);

}  // namespace collimate::tensor

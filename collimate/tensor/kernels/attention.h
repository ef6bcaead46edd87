#pragma once

#include <cstdint>

#include "collimate/tensor/attention_scores.h"
#include "collimate/tensor/kernels/table.h"
#include "collimate/tensor/kv_type.h"

namespace collimate::tensor {

// Queries are worked on in tiles of at most kAttentionRows rows, where a row is a (token, head); keys in chunks of
// kAttentionKeys. A chunk is also the step of the online softmax, so that its size is part of what defines the result's
// bits.
constexpr int64_t kAttentionRows = 24;
constexpr int64_t kAttentionKeys = 64;
constexpr int64_t kAttentionBlocks = kAttentionKeys / 16;
constexpr int64_t kMostHeadDim = 256;
constexpr int64_t kMostLatentDim = 4096;  // of keys and values that are stored but not attended to
constexpr int64_t kHeadStride = 272;      // floats between rows of a tile: 17 cache lines, an odd number

// An AttentionTile is some tokens of one run against one or more neighbouring kv heads. Each chunk is done for all of
// these heads, because a block holds their keys and values side by side. Within a kv head rows are token-major: row =
// (kv_head * tokens + token) * heads + head.
struct AttentionTile {
  const float* q = nullptr;  // first token, first head of the tile
  int64_t q_stride = 0;
  int64_t tokens = 0;
  int64_t kv_heads = 1;   // where more than one: with all of their query heads
  int64_t heads = 0;      // of each kv head
  int64_t head_dim = 0;   // of queries and keys
  int64_t value_dim = 0;  // of values and results
  int64_t first_position = 0;
  const int32_t* blocks = nullptr;
  const float* storage = nullptr;
  KvType type = KvType::kFloat32;  // type of the values in `storage`; the sizes below are in floats
  int64_t block_floats = 0;
  int64_t key_floats = 0;  // from one kv head's keys to the next one's
  int64_t value_floats = 0;
  int64_t key_offset = 0;
  int64_t value_offset = 0;
  AttentionScores scores;
  float* out = nullptr;
  int64_t out_stride = 0;
  float* lse = nullptr;  // or null
  int64_t lse_stride = 0;
  const float* slopes = nullptr;  // ALiBi's slopes of the query heads from the first on, or null
  const float* sinks = nullptr;   // of the query heads from the first on, or null
};

// Returns the first key of the first chunk that a token at `position` or later reads.
inline int64_t first_chunk(int64_t position, int64_t window) {
  return window == 0 || position < window ? 0 : (position - window + 1) / kAttentionKeys * kAttentionKeys;
}

// An AttentionGradient is the task of one document and kv head. `work` has room for
// attention_backward_floats(all_keys(), head_dim, value_dim) floats.
struct AttentionGradient {
  const float* q = nullptr;  // first row of the document, first query head of the kv head
  int64_t q_stride = 0;
  const float* k = nullptr;
  const float* v = nullptr;
  int64_t kv_stride = 0;
  const float* out = nullptr;
  const float* dout = nullptr;
  int64_t out_stride = 0;
  const float* lse = nullptr;
  int64_t lse_stride = 0;
  float* dq = nullptr;
  int64_t dq_stride = 0;
  float* dk = nullptr;
  float* dv = nullptr;
  int64_t dkv_stride = 0;
  int64_t tokens = 0;  // tokens that attend: the last ones of the document's `keys`
  int64_t keys = 0;
  bool adds = false;  // gradients are added to dk and dv; else written
  // Keys ahead of the document's own, in rows of the same strides; their gradients are added to prefix_dk, prefix_dv.
  int64_t prefix = 0;
  const float* prefix_k = nullptr;
  const float* prefix_v = nullptr;
  float* prefix_dk = nullptr;
  float* prefix_dv = nullptr;
  int64_t heads = 0;  // query heads of this kv head
  int64_t head_dim = 0;
  int64_t value_dim = 0;
  AttentionScores scores;
  float* work = nullptr;
  const float* slopes = nullptr;

  int64_t all_keys() const { return prefix + keys; }
  int64_t ahead() const { return all_keys() - tokens; }  // keys before the first token that attends
};

// Returns the working memory of a backward: keys and values transposed and padded to whole chunks, the keys as rows,
// and the gradients of both.
inline int64_t attention_backward_floats(int64_t tokens, int64_t head_dim, int64_t value_dim) {
  const int64_t padded = (tokens + kAttentionKeys - 1) / kAttentionKeys * kAttentionKeys;
  return padded * (3 * head_dim + 2 * value_dim);
}

// A SinkGradient asks for the gradients of the sinks of all heads over some rows.
struct SinkGradient {
  const float* sinks = nullptr;  // [heads]
  const float* out = nullptr;    // [rows, heads * value_dim]
  const float* dout = nullptr;
  int64_t out_stride = 0;
  const float* lse = nullptr;  // [rows, heads]
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t value_dim = 0;
  float* dsinks = nullptr;  // [heads], added to
};

struct AttentionKernels {
  void (*forward)(const AttentionTile& tile);  // kv_heads * tokens * heads <= kAttentionRows
  void (*backward)(const AttentionGradient& gradient);
  void (*sinks_backward)(const SinkGradient& gradient, int64_t begin, int64_t end);  // for heads [begin, end)
};

COLLIMATE_KERNEL_TABLE(AttentionKernels, kAttention, attention_kernels);

}  // namespace collimate::tensor

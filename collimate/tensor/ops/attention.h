#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collimate/tensor/attention_scores.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/kv_type.h"

namespace collimate::tensor {

// Keys and values live in blocks of 16 tokens, in each as the device likes it: opaque but for what is public here.
// head_dim and value_dim are multiples of 4, at most 4096; attention takes at most 256 of each.
struct KvLayout {
  static constexpr int kBlockTokens = 16;
  int kv_heads = 0;
  int head_dim = 0;
  KvType type = KvType::kFloat32;
  int value_dim = 0;  // of a head's values; 0: head_dim

  int value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  bool operator==(const KvLayout&) const = default;
  static int64_t blocks_for(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }
};

// The CPU's block: per kv head the keys transposed [head_dim][16], then per kv head the values [16][value_dim]; behind
// those of int8 the 16 tokens' scales. In floats; a float's place holds two values of bf16, four of one byte.
struct CpuKvBlock {
  KvLayout layout;
  int64_t key_floats() const { return head_floats(layout.head_dim); }
  int64_t value_floats() const { return head_floats(layout.value_width()); }
  int64_t key_offset(int64_t kv_head) const { return kv_head * key_floats(); }
  int64_t value_offset(int64_t kv_head) const { return layout.kv_heads * key_floats() + kv_head * value_floats(); }
  int64_t floats() const { return value_offset(layout.kv_heads); }

 private:
  int64_t head_floats(int64_t width) const {
    const int64_t scales = layout.type == KvType::kInt8 ? 1 : 0;
    return (width / values_per_float(layout.type) + scales) * KvLayout::kBlockTokens;
  }
};

// A block takes so many floats on the exec's device.
int64_t kv_block_floats(const Exec& exec, const KvLayout& layout);
// Copies one block of a storage (see append_kv) over another.
void copy_kv_block(const Exec& exec, const KvLayout& layout, int32_t from, int32_t to, float* storage);

// Adjacent rows of a token array that belong to one sequence and have ascending positions. Decode: tokens = 1.
struct AttentionRun {
  int64_t first_row = 0;  // row of the first token in q, k, v, out
  int64_t tokens = 0;
  int64_t first_position = 0;       // position of that token in its sequence
  const int32_t* blocks = nullptr;  // block ids; entry p / 16 holds position p; covers the run's last position
  // A run that continues another sequence reads that one's full blocks. The last `tail` tokens before first_position,
  // at rows from tail_row on, lie in a block of its own and are appended with the run.
  int64_t tail = 0;
  int64_t tail_row = 0;
};

// Writes rows of k [T, kv_heads * head_dim] and v [T, kv_heads * value_dim] (strides in floats) into the runs' blocks
// at storage + id * kv_block_floats(). Two runs may not write one block. For bf16 they are values that it holds, as
// after round_bf16(); to int8 and fp8 they are rounded here, each token and head by itself. What is not finite shows:
// in int8 all of a row's head becomes NaN, in fp8 the value itself.
void append_kv(const Exec& exec, const KvLayout& layout, const float* k, int64_t k_stride, const float* v,
               int64_t v_stride, std::span<const AttentionRun> runs, float* storage);

// The way back: rows of k and v from the runs' blocks, as fp32.
void read_kv(const Exec& exec, const KvLayout& layout, const float* storage, std::span<const AttentionRun> runs,
             float* k, int64_t k_stride, float* v, int64_t v_stride);

// x[r, i] to the nearest value of bf16, i < width; NaN stays NaN.
void round_bf16(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int64_t width);

// By head: 2^(-8 h / n), h from 1 to n, the power of two up to `heads`; of further heads every second one of 2 n slopes
// (Press et al. 2022).
std::vector<float> alibi_slopes(int heads);
// The slopes of `heads` heads as the scores say; none without alibi.
std::vector<float> slopes_of(const AttentionScores& scores, int heads);

struct AttentionForward {
  KvLayout layout;
  int heads = 0;  // query heads, a multiple of kv_heads; head h reads kv head h / (heads / kv_heads)
  AttentionScores scores;
  const float* q = nullptr;  // [T, heads * head_dim]
  int64_t q_stride = 0;
  const float* storage = nullptr;  // blocks of this layer, see append_kv; the runs' own keys are already in them
  float* out = nullptr;            // [T, heads * value_dim]
  int64_t out_stride = 0;
  float* lse = nullptr;  // [T, heads] or null: log-sum-exp of the scores, for backward
  // [heads] or null: a score of each head that counts in its softmax and has no value (OpenAI 2025; Xiao et al. 2024,
  // arXiv 2309.17453). lse counts it too, by which attention_backward is right without it.
  const float* sinks = nullptr;
};

// Causal attention: the token at position p reads keys 0..p, or the last `scores.window` of them. Blocks all of whose
// tokens, and those of the other blocks of their 64 positions, lie behind the window of every token may hold anything.
// Each query walks key blocks in ascending order with an online softmax, so its bits depend on itself and its keys
// alone: equal for decode, prefill in any cut, and training. Lanes beyond p are never read into a result, whatever they
// hold.
void attention_forward(const Exec& exec, const AttentionForward& args, std::span<const AttentionRun> runs);

// Some tokens at the end of a document that attend: their rows of q, out, dout, lse and dq.
struct Queries {
  int64_t start = 0;
  int64_t tokens = 0;
};

// A sequence packed at rows [start, start + tokens): whole, positions from 0, or, where `prefix` > 0, what follows the
// document of `prefix` tokens at row prefix_start.
struct Document {
  int64_t start = 0;
  int64_t tokens = 0;
  int64_t prefix = 0;
  int64_t prefix_start = 0;
  // Where rows of keys and values are not those of queries: the last of the document's tokens, which alone attend.
  // Gradients of keys and values are then added.
  std::optional<Queries> queries = {};
};

struct AttentionBackward {
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  AttentionScores scores;    // forward's
  const float* q = nullptr;  // [T, heads * head_dim], as forward saw it (after rope)
  int64_t q_stride = 0;
  const float* k = nullptr;  // [T, kv_heads * head_dim]
  const float* v = nullptr;  // [T, kv_heads * value_dim]
  int64_t kv_stride = 0;
  const float* out = nullptr;   // forward's result
  const float* dout = nullptr;  // [T, heads * value_dim]
  int64_t out_stride = 0;       // of out and dout
  const float* lse = nullptr;   // [T, heads] from forward
  float* dq = nullptr;          // written, not accumulated
  int64_t dq_stride = 0;
  float* dk = nullptr;
  float* dv = nullptr;
  int64_t dkv_stride = 0;
  int value_dim = 0;  // 0: head_dim

  int value_width() const { return value_dim > 0 ? value_dim : head_dim; }
};

// Gradients of attention_forward over packed documents, those that continue a document right behind it. Deterministic;
// parallel over (document with its continuations, kv head). dq may alias nothing that is read. Documents with queries
// of their own may be in several parts, and without the one that they continue: those of one family stand together.
void attention_backward(const Exec& exec, const AttentionBackward& args, std::span<const Document> documents);

// dsinks [heads] += the gradient of attention_forward's sinks over `rows` rows, by out, dout and lse of args.
void attention_sinks_backward(const Exec& exec, const AttentionBackward& args, int64_t rows, const float* sinks,
                              float* dsinks);

}  // namespace collimate::tensor

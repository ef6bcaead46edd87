#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collimate/tensor/attention_scores.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/kv_type.h"

namespace collimate::tensor {

// Keys and values live in blocks of 16 tokens, whose layout is the device's own: callers know no more of it than this
// struct says. head_dim and value_dim are multiples of 4 and at most 4096; attention itself takes at most 256 of each.
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

// A block of the CPU holds, for each kv head, the keys transposed as [head_dim][16], then, for each kv head, the values
// as [16][value_dim]; int8 keys and values are each followed by the scales of the 16 tokens. All sizes are in floats;
// the space of a float holds two bf16 values or four of one byte.
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

// Returns how many floats a block takes on the exec's device.
int64_t kv_block_floats(const Exec& exec, const KvLayout& layout);
// Copies one block of a storage (see append_kv) over another one of it.
void copy_kv_block(const Exec& exec, const KvLayout& layout, int32_t from, int32_t to, float* storage);

// An AttentionRun is adjacent rows of a token array that belong to one sequence and have ascending positions. In
// decoding, tokens is 1.
struct AttentionRun {
  int64_t first_row = 0;  // row of the first token in q, k, v, out
  int64_t tokens = 0;
  int64_t first_position = 0;       // position of that token in its sequence
  const int32_t* blocks = nullptr;  // block ids; entry p / 16 holds position p; covers the run's last position
  // A run that continues another sequence reads that sequence's full blocks. The last `tail` tokens before
  // first_position, at rows from tail_row on, lie in a block of the run's own, to which they are appended together with
  // the run.
  int64_t tail = 0;
  int64_t tail_row = 0;
};

// Writes rows of k [T, kv_heads * head_dim] and v [T, kv_heads * value_dim] (strides in floats) into the runs' blocks
// at storage + id * kv_block_floats(). Two runs may not write one block. For bf16, k and v must have values that bf16
// holds, as after round_bf16(); for int8 and fp8 they are rounded here, each token and head by itself. Values that are
// not finite stay visible: in int8 all values of that token and head become NaN, in fp8 the value itself does.
void append_kv(const Exec& exec, const KvLayout& layout, const float* k, int64_t k_stride, const float* v,
               int64_t v_stride, std::span<const AttentionRun> runs, float* storage);

// Reads rows of k and v back from the runs' blocks, as fp32.
void read_kv(const Exec& exec, const KvLayout& layout, const float* storage, std::span<const AttentionRun> runs,
             float* k, int64_t k_stride, float* v, int64_t v_stride);

// Rounds x[r, i], i < width, to the nearest value of bf16; NaN stays NaN.
void round_bf16(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int64_t width);

// Returns one slope per head (Press et al. 2022): with n the largest power of two up to `heads`, 2^(-8 h / n) for the
// first n heads, h from 1 to n; the remaining heads take every second slope of a model with 2 n heads.
std::vector<float> alibi_slopes(int heads);
// Returns the slopes of `heads` heads, of which `scores` says where they lie among the model's; empty without ALiBi.
std::vector<float> slopes_of(const AttentionScores& scores, int heads);

struct AttentionForward {
  KvLayout layout;
  int heads = 0;  // query heads, a multiple of kv_heads; head h reads kv head h / (heads / kv_heads)
  AttentionScores scores;
  const float* q = nullptr;  // [T, heads * head_dim]
  int64_t q_stride = 0;
  const float* storage = nullptr;  // blocks of this layer, see append_kv; they hold the runs' own keys already
  float* out = nullptr;            // [T, heads * value_dim]
  int64_t out_stride = 0;
  float* lse = nullptr;  // [T, heads] or null: log-sum-exp of the scores, for backward
  // [heads] or null: a score of each head that counts in its softmax and has no value (OpenAI 2025; Xiao et al. 2024,
  // arXiv 2309.17453). lse counts it too, so that attention_backward is right without knowing it.
  const float* sinks = nullptr;
};

// Computes causal attention: the token at position p reads keys 0..p, or the last `scores.window` of them. A block may
// hold anything where every position of its 64 (four blocks, aligned) has left the window of all tokens of the run.
// Each query walks key blocks in ascending order with an online softmax, so that its bits depend only on itself and its
// keys: they are equal in decoding, in prefill however it is cut, and in training. Values stored beyond position p
// never reach a result, whatever they are.
void attention_forward(const Exec& exec, const AttentionForward& args, std::span<const AttentionRun> runs);

// Queries are the tokens at the end of a document that attend, given by their rows of q, out, dout, lse and dq.
struct Queries {
  int64_t start = 0;
  int64_t tokens = 0;
};

// A Document is a sequence packed at rows [start, start + tokens): a whole one, with positions from 0, or, where
// `prefix` > 0, the continuation of the document of `prefix` tokens at row prefix_start.
struct Document {
  int64_t start = 0;
  int64_t tokens = 0;
  int64_t prefix = 0;
  int64_t prefix_start = 0;
  // Given where keys and values have other rows than queries. Only these tokens, the document's last ones, attend, and
  // gradients of keys and values are added to dk and dv instead of written.
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

// Computes the gradients of attention_forward over packed documents. Documents that continue another one follow it
// directly in the list. Documents with `queries` may come in several parts and without the one that they continue; then
// the documents of one sequence and its continuations are adjacent. Deterministic; parallel over (document with its
// continuations, kv head). dq may alias nothing that is read.
void attention_backward(const Exec& exec, const AttentionBackward& args, std::span<const Document> documents);

// Adds to dsinks [heads] the gradient of attention_forward's sinks over `rows` rows, from out, dout and lse of args.
void attention_sinks_backward(const Exec& exec, const AttentionBackward& args, int64_t rows, const float* sinks,
                              float* dsinks);

}  // namespace collimate::tensor

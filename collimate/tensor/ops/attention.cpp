#include "collimate/tensor/ops/attention.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/attention.h"

namespace collimate::tensor {
namespace {

void check_heads(int heads, int kv_heads, int head_dim) {
  const bool ok =
      kv_heads > 0 && heads > 0 && heads % kv_heads == 0 && head_dim > 0 && head_dim % 4 == 0 && head_dim <= 256;
  if (!ok) {
    throw base::InputError(base::expectation("attention",
                                             "heads a multiple of kv_heads and head_dim a multiple of 4 up to 256",
                                             std::to_string(heads) + " heads, " + std::to_string(kv_heads) +
                                                 " kv heads, head_dim " + std::to_string(head_dim)));
  }
}

void write_token(const KvLayout& layout, const float* k, const float* v, float* block, int64_t slot) {
  for (int h = 0; h < layout.kv_heads; ++h) {
    float* keys = block + layout.key_offset(h) + slot;
    const float* row = k + int64_t{h} * layout.head_dim;
    for (int d = 0; d < layout.head_dim; ++d) keys[d * KvLayout::kBlockTokens] = row[d];
    std::memcpy(block + layout.value_offset(h) + slot * layout.head_dim, v + int64_t{h} * layout.head_dim,
                static_cast<size_t>(layout.head_dim) * sizeof(float));
  }
}

// Rows [row, row + tokens) of k and v to the positions from `position` on.
struct Appended {
  int64_t row = 0;
  int64_t tokens = 0;
  int64_t position = 0;
};

// Some tokens and heads of a run, at most kAttentionRows rows.
struct Piece {
  const AttentionRun* run;
  int64_t token;
  int64_t tokens;
  int kv_head;
  int64_t head;  // first, among those of the kv head
  int64_t heads;
};

std::vector<Piece> pieces_of(std::span<const AttentionRun> runs, int kv_heads, int64_t group) {
  std::vector<Piece> pieces;
  const int64_t heads = std::min(group, kAttentionRows);
  const int64_t step = kAttentionRows / heads;
  for (const AttentionRun& run : runs) {
    // Late tokens cost most: handed out first, so that threads end together.
    for (int64_t token = (run.tokens - 1) / step * step; token >= 0 && run.tokens > 0; token -= step) {
      for (int kv = 0; kv < kv_heads; ++kv) {
        for (int64_t head = 0; head < group; head += heads) {
          pieces.push_back({&run, token, std::min(step, run.tokens - token), kv, head, std::min(heads, group - head)});
        }
      }
    }
  }
  return pieces;
}

AttentionTile tile_of(const AttentionForward& a, const Piece& piece, int64_t group) {
  const int64_t row = piece.run->first_row + piece.token;
  const int64_t head = piece.kv_head * group + piece.head;
  AttentionTile t;
  t.q = a.q + row * a.q_stride + head * a.layout.head_dim;
  t.q_stride = a.q_stride;
  t.tokens = piece.tokens;
  t.heads = piece.heads;
  t.head_dim = a.layout.head_dim;
  t.first_position = piece.run->first_position + piece.token;
  t.blocks = piece.run->blocks;
  t.storage = a.storage;
  t.block_floats = a.layout.block_floats();
  t.key_offset = a.layout.key_offset(piece.kv_head);
  t.value_offset = a.layout.value_offset(piece.kv_head);
  t.scale = a.scale;
  t.out = a.out + row * a.out_stride + head * a.layout.head_dim;
  t.out_stride = a.out_stride;
  t.lse = a.lse == nullptr ? nullptr : a.lse + row * a.heads + head;
  t.lse_stride = a.heads;
  return t;
}

}  // namespace

void append_kv(const Exec& exec, const KvLayout& layout, const float* k, int64_t k_stride, const float* v,
               int64_t v_stride, std::span<const AttentionRun> runs, float* storage) {
  check_heads(layout.kv_heads, layout.kv_heads, layout.head_dim);
  int64_t floats = 0;
  for (const AttentionRun& run : runs)
    floats += (run.tail + run.tokens) * layout.block_floats() / KvLayout::kBlockTokens;
  const auto count = static_cast<int64_t>(runs.size());
  exec.parallel_for(count, floats < 65536 ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AttentionRun& run = runs[static_cast<size_t>(i)];
      for (const Appended& part : {Appended{run.tail_row, run.tail, run.first_position - run.tail},
                                   Appended{run.first_row, run.tokens, run.first_position}}) {
        for (int64_t t = 0; t < part.tokens; ++t) {
          const int64_t position = part.position + t;
          float* block = storage + run.blocks[position / KvLayout::kBlockTokens] * layout.block_floats();
          const int64_t row = part.row + t;
          write_token(layout, k + row * k_stride, v + row * v_stride, block, position % KvLayout::kBlockTokens);
        }
      }
    }
  });
}

void attention_forward(const Exec& exec, const AttentionForward& args, std::span<const AttentionRun> runs) {
  check_heads(args.heads, args.layout.kv_heads, args.layout.head_dim);
  const int64_t group = args.heads / args.layout.kv_heads;
  const std::vector<Piece> pieces = pieces_of(runs, args.layout.kv_heads, group);
  int64_t work = 0;
  for (const Piece& piece : pieces) work += piece.heads * piece.tokens * (piece.run->first_position + piece.token + 16);
  const AttentionKernels& kernels = attention_kernels();
  const auto count = static_cast<int64_t>(pieces.size());
  const bool small = work * args.layout.head_dim < (int64_t{1} << 16);
  exec.parallel_for(count, small ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernels.forward(tile_of(args, pieces[static_cast<size_t>(i)], group));
  });
  for (const AttentionRun& run : runs)
    base::fault_rows("attention", args.out + run.first_row * args.out_stride, run.tokens,
                     int64_t{args.heads} * args.layout.head_dim, args.out_stride);
}

}  // namespace collimate::tensor

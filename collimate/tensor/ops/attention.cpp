#include "collimate/tensor/ops/attention.h"

#include <c10/util/Float8_e4m3fn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/attention.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/ops/attention_window.h"
#include "collimate/tensor/ops/int8_scale.h"

namespace collimate::tensor {
namespace {

// Throws InputError for numbers of heads or channels that do not fit; a head may have at most `most` channels.
void check_heads(int heads, const KvLayout& layout, int64_t most) {
  const int kv_heads = layout.kv_heads, head_dim = layout.head_dim, value_dim = layout.value_width();
  const bool ok = kv_heads > 0 && heads > 0 && heads % kv_heads == 0 && head_dim > 0 && head_dim % 4 == 0 &&
                  value_dim % 4 == 0 && std::max(head_dim, value_dim) <= most;
  if (!ok) {
    throw base::InputError(base::expectation(
        "attention", fmt::format("heads a multiple of kv_heads, and sizes of heads a multiple of 4 up to {}", most),
        fmt::format("{} heads, {} kv heads, head_dim {}, value_dim {}", heads, kv_heads, head_dim, value_dim)));
  }
}

uint16_t bf16_of(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }

uint8_t fp8_of(float x) {
  constexpr float kLargest = 448;
  return c10::detail::fp8e4m3fn_from_fp32_value(std::isfinite(x) ? std::clamp(x, -kLargest, kLargest) : NAN);
}

// Places says where a token's values of one head lie: value d is element first + d * step.
template <typename Floats>
struct Places {
  Floats* head;
  int64_t first;
  int64_t step;

  template <typename Stored, typename Rounded>
  void fill(const float* from, int64_t width, Rounded rounded) const {
    Stored* to = reinterpret_cast<Stored*>(head) + first;
    for (int64_t d = 0; d < width; ++d) to[d * step] = rounded(from[d]);
  }
  template <typename Stored, typename Widened>
  void read(int64_t width, float* to, Widened widened) const {
    const Stored* from = reinterpret_cast<const Stored*>(head) + first;
    for (int64_t d = 0; d < width; ++d) to[d] = widened(from[d * step]);
  }
};

void write_values(KvType type, const float* from, int64_t width, int64_t slot, const Places<float>& to) {
  switch (type) {
    case KvType::kFloat32:
      return to.fill<float>(from, width, [](float x) { return x; });
    case KvType::kBFloat16:
      return to.fill<uint16_t>(from, width, bf16_of);
    case KvType::kFp8:
      return to.fill<uint8_t>(from, width, fp8_of);
    case KvType::kInt8: {
      const float scale = int8_scale(from, width), inverse = scale > 0 ? 1 / scale : 0;
      to.head[width * KvLayout::kBlockTokens / 4 + slot] = scale;
      return to.fill<int8_t>(from, width, [&](float x) {
        const float whole = std::clamp(std::nearbyint(x * inverse), -127.F, 127.F);
        return static_cast<int8_t>(std::isnan(whole) ? 0 : whole);
      });
    }
  }
}

void write_token(const KvLayout& layout, const float* k, const float* v, float* block, int64_t slot) {
  const int64_t keys = layout.head_dim, values = layout.value_width();
  for (int h = 0; h < layout.kv_heads; ++h, k += keys, v += values) {
    write_values(layout.type, k, keys, slot, {block + CpuKvBlock{layout}.key_offset(h), slot, KvLayout::kBlockTokens});
    write_values(layout.type, v, values, slot, {block + CpuKvBlock{layout}.value_offset(h), slot * values, 1});
  }
}

// Reverses write_values.
void read_values(KvType type, const Places<const float>& from, int64_t width, int64_t slot, float* to) {
  switch (type) {
    case KvType::kFloat32:
      return from.read<float>(width, to, [](float x) { return x; });
    case KvType::kBFloat16:
      return from.read<uint16_t>(width, to, [](uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); });
    case KvType::kFp8:
      return from.read<uint8_t>(width, to, c10::detail::fp8e4m3fn_to_fp32_value);
    case KvType::kInt8: {
      const float scale = from.head[width * KvLayout::kBlockTokens / 4 + slot];
      return from.read<int8_t>(width, to, [&](int8_t x) { return static_cast<float>(x) * scale; });
    }
  }
}

void read_token(const KvLayout& layout, const float* block, int64_t slot, float* k, float* v) {
  const int64_t keys = layout.head_dim, values = layout.value_width();
  for (int h = 0; h < layout.kv_heads; ++h, k += keys, v += values) {
    read_values(layout.type, {block + CpuKvBlock{layout}.key_offset(h), slot, KvLayout::kBlockTokens}, keys, slot, k);
    read_values(layout.type, {block + CpuKvBlock{layout}.value_offset(h), slot * values, 1}, values, slot, v);
  }
}

// Rows [row, row + tokens) of k and v are written to the positions from `position` on.
struct Appended {
  int64_t row = 0;
  int64_t tokens = 0;
  int64_t position = 0;
};

// A Piece is some tokens and heads of a run, at most kAttentionRows rows.
struct Piece {
  const AttentionRun* run;
  int64_t token;
  int64_t tokens;
  int64_t kv_head;
  int64_t kv_heads;
  int64_t head;  // first head, among those of the kv head
  int64_t heads;
};

// Returns how many kv heads of a single token are worked on together: as many as leave each thread several pieces.
int64_t kv_heads_together(int64_t runs, int64_t kv_heads, int64_t group, int threads) {
  const int64_t fit = std::max<int64_t>(1, kAttentionRows / group);
  const int64_t pieces = int64_t{4} * threads;
  return std::clamp<int64_t>(threads == 1 ? kv_heads : runs * kv_heads / pieces, 1, std::min(fit, kv_heads));
}

std::vector<Piece> pieces_of(std::span<const AttentionRun> runs, int64_t kv_heads, int64_t group, int threads) {
  std::vector<Piece> pieces;
  const int64_t heads = std::min(group, kAttentionRows);
  const int64_t step = kAttentionRows / heads;
  const int64_t together = kv_heads_together(static_cast<int64_t>(runs.size()), kv_heads, group, threads);
  for (const AttentionRun& run : runs) {
    // Late tokens cost most, so they are handed out first: then threads end together.
    for (int64_t token = (run.tokens - 1) / step * step; token >= 0 && run.tokens > 0; token -= step) {
      const int64_t tokens = std::min(step, run.tokens - token), most = tokens == 1 ? together : 1;
      for (int64_t kv = 0; kv < kv_heads; kv += most) {
        const int64_t count = std::min(most, kv_heads - kv);
        for (int64_t head = 0; head < group; head += heads)
          pieces.push_back({&run, token, tokens, kv, count, head, std::min(heads, group - head)});
      }
    }
  }
  return pieces;
}

AttentionTile tile_of(const AttentionForward& a, const Piece& piece, int64_t group, const float* slopes) {
  const int64_t row = piece.run->first_row + piece.token;
  const int64_t head = piece.kv_head * group + piece.head;
  AttentionTile t;
  t.q = a.q + row * a.q_stride + head * a.layout.head_dim;
  t.q_stride = a.q_stride;
  t.tokens = piece.tokens;
  t.kv_heads = piece.kv_heads;
  t.heads = piece.heads;
  t.head_dim = a.layout.head_dim;
  t.value_dim = a.layout.value_width();
  t.first_position = piece.run->first_position + piece.token;
  t.blocks = piece.run->blocks;
  t.storage = a.storage;
  t.type = a.layout.type;
  const CpuKvBlock block{a.layout};
  t.block_floats = block.floats();
  t.key_floats = block.key_floats();
  t.value_floats = block.value_floats();
  t.key_offset = block.key_offset(piece.kv_head);
  t.value_offset = block.value_offset(piece.kv_head);
  t.scores = a.scores;
  t.out = a.out + row * a.out_stride + head * t.value_dim;
  t.out_stride = a.out_stride;
  t.lse = a.lse == nullptr ? nullptr : a.lse + row * a.heads + head;
  t.lse_stride = a.heads;
  t.slopes = slopes == nullptr ? nullptr : slopes + head;
  t.sinks = a.sinks == nullptr ? nullptr : a.sinks + head;
  return t;
}

// Returns, for tests, the values that the runs append, as v, with a fault in each row.
const float* nudged_values(const KvLayout& layout, const float* v, int64_t stride, std::span<const AttentionRun> runs,
                           std::vector<float>& copy) {
  int64_t rows = 0;
  for (const AttentionRun& run : runs) rows = std::max({rows, run.first_row + run.tokens, run.tail_row + run.tail});
  const int64_t width = int64_t{layout.kv_heads} * layout.value_width();
  copy.assign(v, v + (rows - 1) * stride + width);
  base::fault_rows("append_kv", copy.data(), rows, width, stride);
  return copy.data();
}

}  // namespace

int64_t first_block_read(int64_t position, int64_t window) {
  return first_chunk(position, window) / KvLayout::kBlockTokens;
}

std::vector<float> alibi_slopes(int heads) {
  const auto whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  std::vector<float> slopes;
  for (int h = 0; h < heads; ++h) {
    const double part = h < whole ? h + 1 : h - whole + 0.5;
    slopes.push_back(static_cast<float>(std::exp2(-8 * part / whole)));
  }
  return slopes;
}

std::vector<float> slopes_of(const AttentionScores& scores, int heads) {
  if (!scores.alibi) return {};
  const std::vector<float> all = alibi_slopes(scores.all_heads > 0 ? scores.all_heads : heads);
  return {all.begin() + scores.first_head, all.begin() + scores.first_head + heads};
}

int64_t cpu::kv_block_floats(const Exec&, const KvLayout& layout) { return CpuKvBlock{layout}.floats(); }

void cpu::copy_kv_block(const Exec& exec, const KvLayout& layout, int32_t from, int32_t to, float* storage) {
  const int64_t floats = CpuKvBlock{layout}.floats();
  cpu::copy(exec, storage + from * floats, floats, storage + to * floats);
}

void cpu::append_kv(const Exec& exec, const KvLayout& layout, const float* k, int64_t k_stride, const float* v,
                    int64_t v_stride, std::span<const AttentionRun> runs, float* storage) {
  check_heads(layout.kv_heads, layout, kMostLatentDim);
  std::vector<float> wrong;
  if (base::nudged("append_kv")) v = nudged_values(layout, v, v_stride, runs, wrong);
  int64_t floats = 0;
  for (const AttentionRun& run : runs)
    floats += (run.tail + run.tokens) * CpuKvBlock{layout}.floats() / KvLayout::kBlockTokens;
  const auto count = static_cast<int64_t>(runs.size());
  exec.parallel_for(count, floats < 8192 ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AttentionRun& run = base::at(runs, i);
      for (const Appended& part : {Appended{run.tail_row, run.tail, run.first_position - run.tail},
                                   Appended{run.first_row, run.tokens, run.first_position}}) {
        for (int64_t t = 0; t < part.tokens; ++t) {
          const int64_t position = part.position + t;
          float* block = storage + run.blocks[position / KvLayout::kBlockTokens] * CpuKvBlock{layout}.floats();
          const int64_t row = part.row + t;
          write_token(layout, k + row * k_stride, v + row * v_stride, block, position % KvLayout::kBlockTokens);
        }
      }
    }
  });
}

void cpu::read_kv(const Exec& exec, const KvLayout& layout, const float* storage, std::span<const AttentionRun> runs,
                  float* k, int64_t k_stride, float* v, int64_t v_stride) {
  exec.parallel_for(static_cast<int64_t>(runs.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const AttentionRun& run = base::at(runs, i);
      for (int64_t t = 0; t < run.tokens; ++t) {
        const int64_t position = run.first_position + t, row = run.first_row + t;
        const float* block = storage + run.blocks[position / KvLayout::kBlockTokens] * CpuKvBlock{layout}.floats();
        read_token(layout, block, position % KvLayout::kBlockTokens, k + row * k_stride, v + row * v_stride);
      }
    }
  });
}

void cpu::round_bf16(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int64_t width) {
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) pointwise_kernels().round_bf16(width, x + r * x_stride);
  });
  base::fault_rows("round_bf16", x, rows, width, x_stride);
}

void cpu::attention_forward(const Exec& exec, const AttentionForward& args, std::span<const AttentionRun> runs) {
  check_heads(args.heads, args.layout, kMostHeadDim);
  const int64_t group = args.heads / args.layout.kv_heads;
  const std::vector<Piece> pieces = pieces_of(runs, args.layout.kv_heads, group, exec.threads());
  int64_t work = 0;
  for (const Piece& piece : pieces)
    work += piece.kv_heads * piece.heads * piece.tokens * (piece.run->first_position + piece.token + 16);
  const AttentionKernels& kernels = attention_kernels();
  const std::vector<float> of_heads = slopes_of(args.scores, args.heads);
  const float* slopes = args.scores.alibi ? of_heads.data() : nullptr;
  const auto count = static_cast<int64_t>(pieces.size());
  const bool small = work * (args.layout.head_dim + 16) < (int64_t{1} << 16);  // an exp is worth some 16 products
  exec.parallel_for(count, small ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernels.forward(tile_of(args, base::at(pieces, i), group, slopes));
  });
  for (const AttentionRun& run : runs)
    base::fault_rows("attention", args.out + run.first_row * args.out_stride, run.tokens,
                     int64_t{args.heads} * args.layout.value_width(), args.out_stride);
}

void append_kv(const Exec& exec, const KvLayout& layout, const float* k, int64_t k_stride, const float* v,
               int64_t v_stride, std::span<const AttentionRun> runs, float* storage) {
  exec.operations().append_kv(exec, layout, k, k_stride, v, v_stride, runs, storage);
}

void read_kv(const Exec& exec, const KvLayout& layout, const float* storage, std::span<const AttentionRun> runs,
             float* k, int64_t k_stride, float* v, int64_t v_stride) {
  exec.operations().read_kv(exec, layout, storage, runs, k, k_stride, v, v_stride);
}

void round_bf16(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int64_t width) {
  exec.operations().round_bf16(exec, x, x_stride, rows, width);
}

void attention_forward(const Exec& exec, const AttentionForward& args, std::span<const AttentionRun> runs) {
  exec.operations().attention_forward(exec, args, runs);
}

int64_t kv_block_floats(const Exec& exec, const KvLayout& layout) {
  return exec.operations().kv_block_floats(exec, layout);
}

void copy_kv_block(const Exec& exec, const KvLayout& layout, int32_t from, int32_t to, float* storage) {
  exec.operations().copy_kv_block(exec, layout, from, to, storage);
}

}  // namespace collimate::tensor

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "collimate/tensor/ops/attention.h"
#include "tests/support/tensor/ops/same_everywhere.h"

// Sequences that attention runs over, packed and in blocks.
namespace collimate::tensor {

struct AttentionCase {
  int heads;
  int kv_heads;
  int head_dim;
  std::vector<int64_t> lengths;
  int64_t window = 0;
  bool alibi = false;
  float softcap = 0;
  int value_dim = 0;
};

// Packed sequences with q, k and v in one array, as a fused linear leaves them.
struct Packed {
  AttentionCase shape;
  int64_t rows = 0;
  int64_t stride = 0;
  std::vector<Document> documents;
  Floats qkv;

  explicit Packed(const AttentionCase& c) : shape(c) {
    for (const int64_t length : c.lengths) {
      documents.push_back({rows, length});
      rows += length;
    }
    stride = width() + kv_width() + v_width() + 4;
    qkv = noise(rows * stride, 5, 2.0F);
  }
  int64_t width() const { return int64_t{shape.heads} * shape.head_dim; }
  int64_t kv_width() const { return int64_t{shape.kv_heads} * shape.head_dim; }
  int64_t value_dim() const { return layout().value_width(); }
  int64_t v_width() const { return shape.kv_heads * value_dim(); }
  int64_t out_width() const { return shape.heads * value_dim(); }
  KvLayout layout(KvType type = KvType::kFloat32) const {
    return {shape.kv_heads, shape.head_dim, type, shape.value_dim};
  }
  const float* q() const { return qkv.data(); }
  const float* k() const { return q() + width(); }
  const float* v() const { return k() + kv_width(); }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }
  AttentionScores scores() const { return {scale(), shape.window, shape.softcap, shape.alibi}; }
};

// Blocks of all sequences, in an order of ids that is not ascending, with NaN wherever nothing was written.
struct Paged {
  KvLayout layout;
  std::vector<std::vector<int32_t>> tables;
  Floats storage;

  Paged(const Packed& p, KvType type) : layout(p.layout(type)) {
    int32_t next = 0;
    for (const Document& d : p.documents) next += static_cast<int32_t>(KvLayout::blocks_for(d.tokens));
    storage =
        constant(next * kv_block_floats({}, layout), std::bit_cast<float>(0x7fffffffU));  // NaN as fp32, bf16 and fp8
    for (const Document& d : p.documents) {
      std::vector<int32_t> ids;
      for (int64_t b = 0; b < KvLayout::blocks_for(d.tokens); ++b) ids.push_back(--next);
      tables.push_back(ids);
    }
  }
};

// out, then lse; with `sinks` of the heads, or null. The sequences go through in pieces of at most `cut` tokens; piece
// by piece appended, then attended.
inline Floats forward(const Exec& exec, const Packed& p, int64_t cut, KvType type = KvType::kFloat32,
                      const float* sinks = nullptr) {
  Paged paged(p, type);
  Floats result = constant(p.rows * (p.out_width() + p.shape.heads), -3.0F);
  AttentionForward args{paged.layout,  p.shape.heads, p.scores(),
                        p.q(),         p.stride,      paged.storage.data(),
                        result.data(), p.out_width(), result.data() + p.rows * p.out_width()};
  args.sinks = sinks;
  for (int64_t at = 0;; at += cut) {
    std::vector<AttentionRun> runs;
    for (size_t s = 0; s < p.documents.size(); ++s) {
      const Document& d = p.documents[s];
      if (at < d.tokens) runs.push_back({d.start + at, std::min(cut, d.tokens - at), at, paged.tables[s].data()});
    }
    if (runs.empty()) break;
    append_kv(exec, paged.layout, p.k(), p.stride, p.v(), p.stride, runs, paged.storage.data());
    attention_forward(exec, args, runs);
  }
  return result;
}

}  // namespace collimate::tensor

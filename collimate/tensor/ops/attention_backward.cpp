#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/attention.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/scratch_need.h"

namespace collimate::tensor {
namespace {

AttentionGradient gradient_of(const AttentionBackward& a, const Document& document, int kv_head, const float* slopes) {
  const int64_t group = a.heads / a.kv_heads;
  const int64_t row = document.start;
  const Queries queries = document.queries.value_or(Queries{row, document.tokens});
  const int64_t head = kv_head * group;
  const int64_t key = int64_t{kv_head} * a.head_dim, value = int64_t{kv_head} * a.value_width();
  const int64_t out_at = queries.start * a.out_stride + head * a.value_width();
  AttentionGradient g;
  g.q = a.q + queries.start * a.q_stride + head * a.head_dim;
  g.q_stride = a.q_stride;
  g.k = a.k + row * a.kv_stride + key;
  g.v = a.v + row * a.kv_stride + value;
  g.kv_stride = a.kv_stride;
  g.out = a.out + out_at;
  g.dout = a.dout + out_at;
  g.out_stride = a.out_stride;
  g.lse = a.lse + queries.start * a.heads + head;
  g.lse_stride = a.heads;
  g.dq = a.dq + queries.start * a.dq_stride + head * a.head_dim;
  g.dq_stride = a.dq_stride;
  g.dk = a.dk + row * a.dkv_stride + key;
  g.dv = a.dv + row * a.dkv_stride + value;
  g.dkv_stride = a.dkv_stride;
  g.tokens = queries.tokens;
  g.keys = document.tokens;
  g.adds = document.queries.has_value();
  g.prefix = document.prefix;
  if (document.prefix > 0) {
    const int64_t ahead = document.start - document.prefix_start;  // rows
    g.prefix_k = g.k - ahead * a.kv_stride, g.prefix_v = g.v - ahead * a.kv_stride;
    g.prefix_dk = g.dk - ahead * a.dkv_stride, g.prefix_dv = g.dv - ahead * a.dkv_stride;
  }
  g.heads = group;
  g.head_dim = a.head_dim;
  g.value_dim = a.value_width();
  g.scores = a.scores;
  g.slopes = slopes == nullptr ? nullptr : slopes + head;
  return g;
}

int64_t root_of(const Document& d) { return d.prefix > 0 ? d.prefix_start : d.start; }

// Returns where in the list the documents of each family (a sequence with its continuations) begin; the last entry is
// the end of the list.
std::vector<size_t> families_of(std::span<const Document> documents) {
  std::vector<size_t> first;
  for (size_t i = 0; i < documents.size(); ++i) {
    const Document& d = documents[i];
    if (d.queries) {
      if (i == 0 || root_of(documents[i - 1]) != root_of(d)) first.push_back(i);
      continue;
    }
    if (d.prefix == 0) {
      first.push_back(i);
      continue;
    }
    COLLIMATE_CHECK(
        !first.empty() && documents[first.back()].start == d.prefix_start && documents[first.back()].tokens == d.prefix,
        "document {} does not continue the one ahead of it", i);
  }
  first.push_back(documents.size());
  return first;
}

}  // namespace

void cpu::attention_backward(const Exec& exec, const AttentionBackward& args, std::span<const Document> documents) {
  COLLIMATE_CHECK(args.kv_heads > 0 && args.heads % args.kv_heads == 0 && args.head_dim % 4 == 0 &&
                  args.head_dim <= kMostHeadDim && args.value_width() % 4 == 0 && args.value_width() <= kMostHeadDim);
  const AttentionKernels& kernels = attention_kernels();
  const std::vector<float> of_heads = slopes_of(args.scores, args.heads);
  const float* slopes = args.scores.alibi ? of_heads.data() : nullptr;
  const std::vector<size_t> families = families_of(documents);
  const int64_t count = static_cast<int64_t>(families.size() - 1) * args.kv_heads;
  int64_t work = 0;
  for (const Document& d : documents) work += d.tokens * (d.prefix + d.tokens) * args.heads * args.head_dim;  // at most
  exec.parallel_for(count, work < (int64_t{1} << 16) ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto family = static_cast<size_t>(i / args.kv_heads);
      for (size_t d = families[family]; d < families[family + 1]; ++d) {
        if (documents[d].tokens == 0) continue;
        AttentionGradient g = gradient_of(args, documents[d], static_cast<int>(i % args.kv_heads), slopes);
        g.work = scratch(ScratchSlot::kAttention, attention_backward_floats(g.all_keys(), g.head_dim, g.value_dim));
        kernels.backward(g);
      }
    }
  });
}

void add_attention_backward_scratch(int64_t keys, int64_t head_dim, int64_t value_dim, ScratchNeed& need) {
  need.in_each(ScratchSlot::kAttention, attention_backward_floats(keys, head_dim, value_dim));
}

void cpu::attention_sinks_backward(const Exec& exec, const AttentionBackward& args, int64_t rows, const float* sinks,
                                   float* dsinks) {
  const SinkGradient gradient{sinks, args.out,   args.dout,          args.out_stride, args.lse,
                              rows,  args.heads, args.value_width(), dsinks};
  const int64_t grain = row_grain(2 * rows * args.value_width());
  exec.parallel_for(args.heads, grain,
                    [&](int64_t begin, int64_t end) { attention_kernels().sinks_backward(gradient, begin, end); });
}

void attention_sinks_backward(const Exec& exec, const AttentionBackward& args, int64_t rows, const float* sinks,
                              float* dsinks) {
  exec.operations().attention_sinks_backward(exec, args, rows, sinks, dsinks);
}

void attention_backward(const Exec& exec, const AttentionBackward& args, std::span<const Document> documents) {
  exec.operations().attention_backward(exec, args, documents);
}

}  // namespace collimate::tensor

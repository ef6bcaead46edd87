#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/attention.h"
#include "collimate/tensor/kernels/pick.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::tensor {
namespace {

AttentionGradient gradient_of(const AttentionBackward& a, const Document& document, int kv_head) {
  const int64_t group = a.heads / a.kv_heads;
  const int64_t row = document.start;
  const int64_t head = kv_head * group;
  const int64_t kv_at = row * a.kv_stride + int64_t{kv_head} * a.head_dim;
  const int64_t dkv_at = row * a.dkv_stride + int64_t{kv_head} * a.head_dim;
  const int64_t out_at = row * a.out_stride + head * a.head_dim;
  AttentionGradient g;
  g.q = a.q + row * a.q_stride + head * a.head_dim;
  g.q_stride = a.q_stride;
  g.k = a.k + kv_at;
  g.v = a.v + kv_at;
  g.kv_stride = a.kv_stride;
  g.out = a.out + out_at;
  g.dout = a.dout + out_at;
  g.out_stride = a.out_stride;
  g.lse = a.lse + row * a.heads + head;
  g.lse_stride = a.heads;
  g.dq = a.dq + row * a.dq_stride + head * a.head_dim;
  g.dq_stride = a.dq_stride;
  g.dk = a.dk + dkv_at;
  g.dv = a.dv + dkv_at;
  g.dkv_stride = a.dkv_stride;
  g.tokens = document.tokens;
  g.heads = group;
  g.head_dim = a.head_dim;
  g.scale = a.scale;
  return g;
}

}  // namespace

void attention_backward(const Exec& exec, const AttentionBackward& args, std::span<const Document> documents) {
  COLLIMATE_CHECK(args.kv_heads > 0 && args.heads % args.kv_heads == 0 && args.head_dim % 4 == 0 &&
                  args.head_dim <= 256);
  const AttentionKernels& kernels = pick(avx2::kAttention, avx512::kAttention);
  const int64_t count = static_cast<int64_t>(documents.size()) * args.kv_heads;
  int64_t work = 0;
  for (const Document& d : documents) work += d.tokens * d.tokens * args.heads * args.head_dim;
  exec.parallel_for(count, work < (int64_t{1} << 16) ? count : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Document& document = documents[static_cast<size_t>(i / args.kv_heads)];
      if (document.tokens == 0) continue;
      AttentionGradient g = gradient_of(args, document, static_cast<int>(i % args.kv_heads));
      g.work = scratch(ScratchSlot::kAttention, attention_backward_floats(document.tokens, args.head_dim));
      kernels.backward(g);
    }
  });
}

}  // namespace collimate::tensor

// Scores without values in the softmax of attention, against their definition in ATen, in double.
#include <cmath>

#include "collimate/tensor/autograd.h"
#include "tests/support/tensor/ops/aten_doubles.h"
#include "tests/support/tensor/ops/packed_attention.h"

namespace collimate::tensor {
namespace {

const AttentionCase kSunk = {.heads = 6, .kv_heads = 2, .head_dim = 8, .lengths = {70, 1, 33}, .window = 0};
// Below all scores, among them, and above: of the last heads little or nothing else is left.
const Floats kSinks = {-300, -2, 0.5F, 3, 40, 150};

// [T, heads value_dim] and log-sum-exps [T, heads] of one sequence: a column of sinks beside the scores.
std::vector<at::Tensor> attention_with_sinks(const Packed& p, const at::Tensor& qkv, const at::Tensor& sinks) {
  const int64_t tokens = qkv.size(0), heads = p.shape.heads;
  const auto split = [&](int64_t first, int64_t of) {
    const at::Tensor x = qkv.slice(1, first, first + of * p.shape.head_dim).reshape({tokens, of, -1}).transpose(0, 1);
    return x.repeat_interleave(heads / of, 0);
  };
  const at::Tensor q = split(0, heads), k = split(p.width(), p.shape.kv_heads),
                   v = split(p.width() + p.kv_width(), p.shape.kv_heads);
  const at::Tensor future = at::ones({tokens, tokens}, at::kBool).triu(1);
  const at::Tensor scores =
      (q.matmul(k.transpose(1, 2)) * static_cast<double>(p.scale())).masked_fill(future, -INFINITY);
  const at::Tensor all = at::cat({scores, sinks.view({heads, 1, 1}).expand({heads, tokens, 1})}, 2);
  return {all.softmax(-1).slice(2, 0, tokens).matmul(v).transpose(0, 1).reshape({tokens, -1}),
          all.logsumexp(-1).transpose(0, 1)};
}

// d qkv, then d sinks, which 0.25 was in.
Floats sunk_gradient(const Exec& exec, const Packed& p, const Floats& saved, const Floats& dout) {
  Floats g = constant(p.rows * p.stride, 0), dsinks = constant(p.shape.heads, 0.25F);
  AttentionBackward b;
  b.heads = p.shape.heads, b.kv_heads = p.shape.kv_heads, b.head_dim = p.shape.head_dim, b.scores = p.scores();
  b.q = p.q(), b.q_stride = p.stride, b.k = p.k(), b.v = p.v(), b.kv_stride = p.stride;
  b.out = saved.data(), b.dout = dout.data(), b.out_stride = p.out_width();
  b.lse = saved.data() + p.rows * p.out_width();
  b.dq = g.data(), b.dq_stride = p.stride;
  b.dk = g.data() + p.width(), b.dv = b.dk + p.kv_width(), b.dkv_stride = p.stride;
  attention_backward(exec, b, p.documents);
  attention_sinks_backward(exec, b, p.rows, kSinks.data(), dsinks.data());
  g.insert(g.end(), dsinks.begin(), dsinks.end());
  return g;
}

TEST(AttentionSinks, ValuesAndGradientsAreAtensHoweverTheyAreCut) {
  const Packed p(kSunk);
  const Floats got =
      same_everywhere([&](const Exec& exec) { return forward(exec, p, 1000, KvType::kFloat32, kSinks.data()); });
  for (const int64_t cut : {1, 7, 50})
    EXPECT_TRUE(same_bits(forward({}, p, cut, KvType::kFloat32, kSinks.data()), got)) << "in pieces of " << cut;
  const Floats dout = noise(p.rows * p.out_width(), 9);
  const Floats gradient = same_everywhere([&](const Exec& exec) { return sunk_gradient(exec, p, got, dout); });

  const at::Tensor leaf = make_leaf(doubles(p.qkv, {p.rows, p.stride}));
  const at::Tensor sinks = make_leaf(doubles(kSinks, {p.shape.heads}));
  std::vector<at::Tensor> outs, sums;
  for (const Document& d : p.documents) {
    const auto both = attention_with_sinks(p, leaf.slice(0, d.start, d.start + d.tokens), sinks);
    outs.push_back(both[0]);
    sums.push_back(both[1]);
  }
  const at::Tensor out = at::cat(outs), lse = at::cat(sums);
  const at::Tensor wanted = at::cat({out.detach().flatten(), lse.detach().flatten()});
  EXPECT_LT(((doubles(got, wanted.sizes()) - wanted).abs() / (1 + wanted.abs())).max().item<double>(), 2e-5);
  const auto d = gradients_of(out, doubles(dout, out.sizes()), {leaf, sinks});
  const at::Tensor all = at::cat({d[0].flatten(), d[1] + 0.25});
  EXPECT_LT(((doubles(gradient, all.sizes()) - all).abs() / (1 + all.abs())).max().item<double>(), 3e-5);
  EXPECT_GT(d[1].abs().max().item<double>(), 0.1) << "the case would show nothing";
}

TEST(AttentionSinks, OneFarBelowAllScoresChangesNoBit) {
  const Packed p(kSunk);
  const Floats low = constant(p.shape.heads, -1000), none = constant(p.shape.heads, NAN);
  EXPECT_TRUE(same_bits(forward({}, p, 16, KvType::kFloat32, low.data()), forward({}, p, 16)));
  const Floats lost = forward({}, p, 16, KvType::kFloat32, none.data());
  EXPECT_TRUE(std::all_of(lost.begin(), lost.end(), [](float x) { return std::isnan(x); })) << "NaN shows";
}

}  // namespace
}  // namespace collimate::tensor

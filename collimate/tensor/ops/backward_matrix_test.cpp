// Backward kernels against their plain composition in ATen, in double: shapes × types × instruction sets.
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/log_prob.h"
#include "collimate/tensor/ops/norm.h"
#include "tests/support/tensor/ops/aten_doubles.h"

namespace collimate::tensor {
namespace {

// The operand of a product as kernels of that type read it.
at::Tensor operand(const at::Tensor& values, ComputeType type) {
  return is_bf16(type) ? values.to(at::kBFloat16).to(at::kDouble) : values;
}

Floats part(const Floats& all, int64_t first, int64_t count) {
  return {all.begin() + first, all.begin() + first + count};
}

// No number further from ATen's than `tolerance` of the largest one.
void expect_agrees(const Floats& got, const at::Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(static_cast<int64_t>(got.size()), want.numel()) << what;
  const double largest = want.abs().max().item<double>();
  const double error = (doubles(got, want.sizes()) - want).abs().max().item<double>();
  EXPECT_LE(error, tolerance * (0.1 + largest)) << what << ", largest " << largest;
}

struct Size {
  int64_t rows, n, k;
};

std::string type_name(ComputeType type) { return std::string(name_of(type)); }
std::string size_name(const Size& s) {
  return std::to_string(s.rows).append("x").append(std::to_string(s.n)).append("x").append(std::to_string(s.k));
}

constexpr ComputeType kOperandTypes[] = {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot};

using Product = std::tuple<Size, ComputeType>;
std::string product_name(const testing::TestParamInfo<Product>& info) {
  return size_name(std::get<0>(info.param)).append("_").append(type_name(std::get<1>(info.param)));
}

class LinearMatrix : public testing::TestWithParam<Product> {};

TEST_P(LinearMatrix, GradientsAreAtens) {
  const auto [size, type] = GetParam();
  const auto [rows, n, k] = size;
  const Floats w = noise(n * k, 1), x = noise(rows * k, 2), dy = noise(rows * n, 3);
  // dx, dw, db, the last two added to 0.25.
  const Floats got = same_everywhere([&, rows = rows, n = n, k = k, type = type](const Exec& exec) {
    Floats out = constant(rows * k + n * k + n, 0.25F);
    float* dw = out.data() + rows * k;
    linear_grad_input(exec, type, dy.data(), n, rows, w.data(), n, k, out.data(), k);
    linear_grad_weight(exec, type, dy.data(), n, x.data(), k, rows, n, k, dw, dw + n * k);
    return out;
  });
  const at::Tensor x_leaf = make_leaf(operand(doubles(x, {rows, k}), type)),
                   w_leaf = make_leaf(operand(doubles(w, {n, k}), type));
  const at::Tensor dy_all = doubles(dy, {rows, n});
  const auto want = gradients_of(at::linear(x_leaf, w_leaf), operand(dy_all, type), {x_leaf, w_leaf});
  expect_agrees(part(got, 0, rows * k), want[0], 1e-5, "dx");
  expect_agrees(part(got, rows * k, n * k), want[1] + 0.25, 1e-5, "dw");
  expect_agrees(part(got, rows * k + n * k, n), dy_all.sum(0) + 0.25, 1e-5, "db");
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearMatrix,
                         testing::Combine(testing::Values(Size{1, 1, 1}, Size{1, 37, 530}, Size{3, 33, 31},
                                                          Size{5, 1, 129}, Size{17, 64, 96}, Size{40, 37, 530},
                                                          Size{131, 450, 97}, Size{257, 31, 33}),
                                          testing::ValuesIn(kOperandTypes)),
                         product_name);

// The product, and the bound of logits.
class LogProbMatrix : public testing::TestWithParam<std::tuple<Product, float>> {};

// L = Σ a log p(target) + Σ b entropy of softmax(bounded(h w^T + bias) / temperature).
TEST_P(LogProbMatrix, GradientsAreAtens) {
  const auto& [product, cap] = GetParam();
  const auto [size, type] = product;
  const auto [rows, vocab, width] = size;
  const float temperature = 0.8F;
  const Floats hidden = noise(rows * width, 1), w = noise(vocab * width, 2, 1.5F), bias = noise(vocab, 3);
  const Floats a = noise(rows, 4), b = noise(rows, 5);
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r) targets.push_back(static_cast<int32_t>(r * 37 % vocab));
  const auto backward = [&, rows = rows, vocab = vocab, width = width, type = type, cap = cap](const Exec& exec,
                                                                                               bool kept) {
    LinearPanels panels;
    pack_linear(exec, w.data(), vocab, width, type, 1, panels);
    const LogProbHead head{hidden.data(), width, rows, &panels, bias.data(), temperature, targets.data(), cap};
    Floats out = constant((rows + vocab) * width + vocab, 0), row = constant(3 * rows, 0), logits(rows * vocab);
    float* dw = out.data() + rows * width;
    float* max = row.data();
    if (kept)
      log_softmax_gather(exec, head,
                         {.entropy = max + 2 * rows, .max = max, .log_sum = max + rows, .logits = logits.data()});
    log_softmax_gather_backward(
        exec, head, {a.data(), b.data(), w.data(), out.data(), width, false, dw, dw + vocab * width},
        kept ? LogProbForward{max, max + rows, max + 2 * rows, logits.data()} : LogProbForward{});
    return out;
  };
  const Floats got = same_everywhere([&](const Exec& exec) { return backward(exec, false); });
  EXPECT_TRUE(same_bits(backward(Exec{}, true), got)) << "from the logits that forward kept";
  const at::Tensor h_leaf = make_leaf(operand(doubles(hidden, {rows, width}), type)),
                   w_leaf = make_leaf(operand(doubles(w, {vocab, width}), type));
  const at::Tensor logits = at::linear(h_leaf, w_leaf, doubles(bias, {vocab})), leaf = make_leaf(logits);
  const at::Tensor bounded = cap > 0 ? (leaf / static_cast<double>(cap)).tanh() * static_cast<double>(cap) : leaf;
  const at::Tensor log_p = (bounded / static_cast<double>(temperature)).log_softmax(-1);
  const at::Tensor index = at::tensor(targets, at::kLong).unsqueeze(1);
  const at::Tensor loss = (doubles(a, {rows}) * log_p.gather(1, index).squeeze(1)).sum() -
                          (doubles(b, {rows}) * (log_p.exp() * log_p).sum(-1)).sum();
  const at::Tensor d = gradients_of(loss, {leaf})[0];  // rounded as the products that follow read it
  const auto want = gradients_of(logits, operand(d, type), {h_leaf, w_leaf});
  const double tolerance =
      is_bf16(type) ? 4e-3 : 2e-5;  // a number beside the middle of two bf16 ones may fall either way
  expect_agrees(part(got, 0, rows * width), want[0], tolerance, "dhidden");
  expect_agrees(part(got, rows * width, vocab * width), want[1], tolerance, "dw");
  expect_agrees(part(got, (rows + vocab) * width, vocab), d.sum(0), 2e-5, "dbias");
}

std::string bounded_name(const testing::TestParamInfo<std::tuple<Product, float>>& info) {
  const auto& [product, cap] = info.param;
  return product_name({product, info.index}) + (cap > 0 ? "_bounded" : "");
}

INSTANTIATE_TEST_SUITE_P(Shapes, LogProbMatrix,
                         testing::Combine(testing::Combine(testing::Values(Size{1, 2, 5}, Size{3, 33, 31},
                                                                           Size{19, 127, 64}, Size{40, 1000, 33},
                                                                           Size{131, 601, 96}),
                                                           testing::ValuesIn(kOperandTypes)),
                                          testing::Values(0.0F, 2.5F)),
                         bounded_name);

using NormSize = std::tuple<int64_t, int64_t>;  // rows, width
std::string norm_name(const testing::TestParamInfo<NormSize>& info) {
  return std::to_string(std::get<0>(info.param)).append("x").append(std::to_string(std::get<1>(info.param)));
}

constexpr float kEpsilon = 1e-5F;

class NormMatrix : public testing::TestWithParam<NormSize> {
 protected:
  int64_t rows() const { return std::get<0>(GetParam()); }
  int64_t width() const { return std::get<1>(GetParam()); }
  int64_t count() const { return rows() * width(); }

  Floats x_ = noise(count(), 1), weight_ = noise(width(), 2), bias_ = noise(width(), 4), dy_ = noise(count(), 3);
};

TEST_P(NormMatrix, RmsGradientsAreAtens) {
  for (const bool accumulate : {false, true}) {
    const float offset = accumulate ? 1 : 0;
    const Floats got = same_everywhere([&](const Exec& exec) {
      Floats y(x_.size()), inverse = constant(rows(), 0), out = constant(count() + width(), 0.25F);
      rms_norm(exec, x_.data(), rows(), width(), weight_.data(), kEpsilon, y.data(), inverse.data(), offset);
      rms_norm_backward(exec, dy_.data(), x_.data(), inverse.data(), rows(), width(), weight_.data(), out.data(),
                        accumulate, out.data() + count(), offset);
      return out;
    });
    const at::Tensor x = make_leaf(doubles(x_, {rows(), width()})), weight = make_leaf(doubles(weight_, {width()}));
    const at::Tensor y = x * (x.square().mean(-1, true) + static_cast<double>(kEpsilon)).rsqrt() * (weight + offset);
    const auto want = gradients_of(y, doubles(dy_, {rows(), width()}), {x, weight});
    expect_agrees(part(got, 0, count()), accumulate ? want[0] + 0.25 : want[0], 2e-5, "dx");
    expect_agrees(part(got, count(), width()), want[1] + 0.25, 2e-5, "dweight");
  }
}

TEST_P(NormMatrix, LayerGradientsAreAtens) {
  for (const bool accumulate : {false, true}) {
    const Floats got = same_everywhere([&](const Exec& exec) {
      Floats y(x_.size()), mean = constant(rows(), 0), inverse = mean, out = constant(count() + 2 * width(), 0.25F);
      layer_norm(exec, x_.data(), rows(), width(), weight_.data(), bias_.data(), kEpsilon, y.data(), mean.data(),
                 inverse.data());
      layer_norm_backward(exec, dy_.data(), x_.data(), mean.data(), inverse.data(), rows(), width(), weight_.data(),
                          out.data(), accumulate, out.data() + count(), out.data() + count() + width());
      return out;
    });
    const at::Tensor x = make_leaf(doubles(x_, {rows(), width()})), weight = make_leaf(doubles(weight_, {width()})),
                     bias = make_leaf(doubles(bias_, {width()}));
    const at::Tensor y = at::layer_norm(x, {width()}, weight, bias, static_cast<double>(kEpsilon));
    const auto want = gradients_of(y, doubles(dy_, {rows(), width()}), {x, weight, bias});
    expect_agrees(part(got, 0, count()), accumulate ? want[0] + 0.25 : want[0], 2e-5, "dx");
    expect_agrees(part(got, count(), width()), want[1] + 0.25, 2e-5, "dweight");
    expect_agrees(part(got, count() + width(), width()), want[2] + 0.25, 2e-5, "dbias");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormMatrix,
                         testing::Combine(testing::Values<int64_t>(1, 3, 17, 400),
                                          testing::Values<int64_t>(5, 16, 70, 129, 768)),
                         norm_name);

struct Heads {
  int heads, kv_heads, dim;
  std::vector<int64_t> lengths;  // of the packed sequences

  int64_t rows() const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }
  int64_t q_width() const { return int64_t{heads} * dim; }
  int64_t kv_width() const { return int64_t{kv_heads} * dim; }
  int64_t width() const { return q_width() + 2 * kv_width(); }
  double scale() const { return 1 / std::sqrt(static_cast<double>(dim)); }
};

// d qkv [rows, width] of the kernels; qkv has q, k and v side by side.
Floats attention_gradient(const Exec& exec, const Heads& h, const Floats& qkv, const Floats& dout) {
  const KvLayout layout{h.kv_heads, h.dim};
  std::vector<Document> documents;
  std::vector<AttentionRun> runs;
  std::vector<int32_t> blocks;
  int64_t row = 0;
  for (const int64_t length : h.lengths) {
    documents.push_back({row, length});
    row += length;
    for (int64_t b = 0; b < KvLayout::blocks_for(length); ++b) blocks.push_back(static_cast<int32_t>(blocks.size()));
  }
  const int32_t* next = blocks.data();
  for (const Document& d : documents) {
    runs.push_back({d.start, d.tokens, 0, next});
    next += KvLayout::blocks_for(d.tokens);
  }
  Floats storage = nans(static_cast<int64_t>(blocks.size()) * kv_block_floats({}, layout));
  const float *k = qkv.data() + h.q_width(), *v = k + h.kv_width();
  Floats out = constant(row * h.q_width(), 0), lse = constant(row * h.heads, 0), g = constant(row * h.width(), 0);
  const auto scale = static_cast<float>(h.scale());
  append_kv(exec, layout, k, h.width(), v, h.width(), runs, storage.data());
  attention_forward(
      exec, {layout, h.heads, {scale}, qkv.data(), h.width(), storage.data(), out.data(), h.q_width(), lse.data()},
      runs);
  AttentionBackward b;
  b.heads = h.heads, b.kv_heads = h.kv_heads, b.head_dim = h.dim, b.scores.scale = scale;
  b.q = qkv.data(), b.k = k, b.v = v, b.q_stride = b.kv_stride = h.width();
  b.out = out.data(), b.dout = dout.data(), b.out_stride = h.q_width(), b.lse = lse.data();
  b.dq = g.data(), b.dk = g.data() + h.q_width(), b.dv = b.dk + h.kv_width(), b.dq_stride = b.dkv_stride = h.width();
  attention_backward(exec, b, documents);
  return g;
}

// Causal attention of one sequence, [T, heads dim] from qkv [T, width].
at::Tensor attention_of(const Heads& h, const at::Tensor& qkv) {
  const int64_t tokens = qkv.size(0);
  const auto split = [&](int64_t first, int64_t heads) {
    const at::Tensor x = qkv.slice(1, first, first + heads * h.dim).reshape({tokens, heads, h.dim}).transpose(0, 1);
    return x.repeat_interleave(h.heads / heads, 0);
  };
  const at::Tensor q = split(0, h.heads), k = split(h.q_width(), h.kv_heads),
                   v = split(h.q_width() + h.kv_width(), h.kv_heads);
  const at::Tensor future = at::ones({tokens, tokens}, at::kBool).triu(1);
  const at::Tensor scores = (q.matmul(k.transpose(1, 2)) * h.scale()).masked_fill(future, -INFINITY);
  return scores.softmax(-1).matmul(v).transpose(0, 1).reshape({tokens, h.q_width()});
}

class AttentionMatrix : public testing::TestWithParam<Heads> {};

TEST_P(AttentionMatrix, GradientsAreAtens) {
  const Heads& h = GetParam();
  const Floats qkv = noise(h.rows() * h.width(), 5, 2.0F), dout = noise(h.rows() * h.q_width(), 9);
  const Floats got = same_everywhere([&](const Exec& exec) { return attention_gradient(exec, h, qkv, dout); });
  const at::Tensor leaf = make_leaf(doubles(qkv, {h.rows(), h.width()}));
  std::vector<at::Tensor> outputs;
  int64_t row = 0;
  for (const int64_t length : h.lengths) {
    outputs.push_back(attention_of(h, leaf.slice(0, row, row + length)));
    row += length;
  }
  const auto want = gradients_of(at::cat(outputs), doubles(dout, {h.rows(), h.q_width()}), {leaf});
  expect_agrees(got, want[0], 2e-5, "dqkv");
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionMatrix,
                         testing::Values(Heads{1, 1, 4, {1}}, Heads{4, 2, 8, {5, 33, 17}}, Heads{3, 3, 12, {70, 1, 40}},
                                         Heads{6, 2, 16, {130, 20}}, Heads{5, 1, 36, {31, 2}},
                                         Heads{4, 1, 64, {30, 90}}, Heads{2, 2, 128, {21}}, Heads{1, 1, 256, {18}}));

}  // namespace
}  // namespace collimate::tensor

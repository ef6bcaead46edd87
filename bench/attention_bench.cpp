// Compares causal attention, forward and backward, with ATen's scaled_dot_product_attention and its autograd, in one
// process:
//   bench_attention [rounds] [15m 110m] [float32 bfloat16] [128 256 512 1024 2048]
// Attention has a model's heads and sequences of the given length, 2,048 tokens together. Our forward appends keys and
// values to the cache and computes attention with its softmax statistics, from q, k and v side by side as the model has
// them; our backward gives the gradients of the three. Ours computes in fp32 for both types; for bfloat16 only theirs
// has bf16 operands. Theirs reads [B, T, H, D] as [B, H, T, D], as models do. Numbers are medians of the rounds
// (least .. largest); if the ranges touch, it is a tie.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <cmath>
#include <utility>

#include "bench/models.h"
#include "bench/sides.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::bench {
namespace {

using tensor::Exec;

constexpr int64_t kTokens = 2048;

struct Work {
  int64_t sequences, tokens;  // tokens of each sequence
  int heads, head_dim;
  int64_t rows() const { return sequences * tokens; }
  int64_t width() const { return int64_t{heads} * head_dim; }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }
};

class Ours {
 public:
  Ours(Exec exec, const Work& work)
      : exec_(exec),
        work_(work),
        layout_{work.heads, work.head_dim},
        qkv_(noise(3 * work.rows() * work.width())),
        dout_(noise(work.rows() * work.width(), 2)),
        out_(dout_.size()),
        dqkv_(qkv_.size()),
        lse_(static_cast<size_t>(work.rows() * work.heads)) {
    const int64_t blocks = tensor::KvLayout::blocks_for(work.tokens);
    storage_.resize(static_cast<size_t>(work.sequences * blocks * tensor::kv_block_floats({}, layout_)));
    for (int64_t i = 0; i < work.sequences * blocks; ++i) ids_.push_back(static_cast<int32_t>(i));
    for (int64_t s = 0; s < work.sequences; ++s) {
      runs_.push_back({s * work.tokens, work.tokens, 0, ids_.data() + s * blocks});
      documents_.push_back({s * work.tokens, work.tokens});
    }
  }

  std::vector<double> pass() {
    const double forward = seconds_of([&] { run_forward(); });
    return {forward, seconds_of([&] { run_backward(); })};
  }

 private:
  void run_forward() {
    const int64_t stride = 3 * work_.width();
    const float* q = qkv_.data();
    append_kv(exec_, layout_, q + work_.width(), stride, q + 2 * work_.width(), stride, runs_, storage_.data());
    const tensor::AttentionForward args{layout_,         work_.heads, {work_.scale()}, q,          stride,
                                        storage_.data(), out_.data(), work_.width(),   lse_.data()};
    attention_forward(exec_, args, runs_);
  }

  void run_backward() {
    const int64_t width = work_.width();
    tensor::AttentionBackward b;
    b.heads = b.kv_heads = work_.heads, b.head_dim = work_.head_dim, b.scores.scale = work_.scale();
    b.q = qkv_.data(), b.k = b.q + width, b.v = b.q + 2 * width;
    b.dq = dqkv_.data(), b.dk = b.dq + width, b.dv = b.dq + 2 * width;
    b.q_stride = b.kv_stride = b.dq_stride = b.dkv_stride = 3 * width;
    b.out = out_.data(), b.dout = dout_.data(), b.out_stride = width, b.lse = lse_.data();
    attention_backward(exec_, b, documents_);
  }

  Exec exec_;
  Work work_;
  tensor::KvLayout layout_;
  std::vector<float> qkv_, dout_, out_, dqkv_, lse_, storage_;
  std::vector<int32_t> ids_;
  std::vector<tensor::AttentionRun> runs_;
  std::vector<tensor::Document> documents_;
};

class Theirs {
 public:
  Theirs(const Work& work, at::ScalarType type) : dout_(values(work, type, 5).transpose(1, 2)) {
    for (uint32_t i = 0; i < 3; ++i) leaves_.push_back(tensor::make_leaf(values(work, type, i + 2)));
  }

  std::vector<double> pass() const {
    at::Tensor out;
    const double forward = seconds_of([&] {
      out = at::scaled_dot_product_attention(leaves_[0].transpose(1, 2), leaves_[1].transpose(1, 2),
                                             leaves_[2].transpose(1, 2), {}, 0.0, /*is_causal=*/true);
    });
    return {forward, seconds_of([&] { tensor::gradients_of(out, dout_, leaves_); })};
  }

 private:
  // Returns random values [B, T, H, D] in memory of their own.
  static at::Tensor values(const Work& work, at::ScalarType type, uint32_t seed) {
    std::vector<float> x = noise(work.rows() * work.width(), seed);
    return at::from_blob(x.data(), {work.sequences, work.tokens, work.heads, work.head_dim}, at::kFloat)
        .to(type, /*non_blocking=*/false, /*copy=*/true);
  }

  at::Tensor dout_;
  std::vector<at::Tensor> leaves_;
};

void compare(const Exec& exec, const std::string& model, const std::string& type, int64_t tokens, int rounds) {
  const shape::ModelShape shape = model_shape(model);
  const Work work{std::max<int64_t>(1, kTokens / tokens), tokens,
                  static_cast<int>(shape.blocks.front().attention.heads),
                  static_cast<int>(shape.blocks.front().attention.head_dim)};
  Ours ours(exec, work);
  const Theirs theirs(work, type == "float32" ? at::kFloat : at::kBFloat16);
  const auto spreads = take_turns(rounds, {[&] { return seconds_of_parts([&] { return ours.pass(); }); },
                                           [&] { return seconds_of_parts([&] { return theirs.pass(); }); }});
  constexpr const char* kParts[] = {"forward", "backward", "both"};
  for (size_t part = 0; part < 3; ++part) {
    const std::string name =
        fmt::format("attention {} {} S={} T={} {}", model, type, work.sequences, tokens, kParts[part]);
    print_sides(name, spreads[0][part], spreads[1][part]);
  }
}

void run(Words words) {
  const SaidSides said{words.among({"15m", "110m"}), words.among({"float32", "bfloat16"}),
                       words.among({"128", "256", "512", "1024", "2048"})};
  compare_sides(words, said, &compare);
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_attention", argc, argv, &collimate::bench::run);
}

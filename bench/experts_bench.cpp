// Compares a small mixture of experts (29M active of 117M parameters, 16 experts, 2 for each token) with the Llama of
// equal work:
//   bench_experts [rounds] [products models] [float32 bfloat16] [8 32 128]
// products measures the products of one block, where each expert gets so many rows; the dense block has a row for each
// of these tokens. The forward is gate and up, then down; the backward is both gradients of both. models measures a
// forward and a training step of 512 tokens. The share is the dense time divided by the mixture's. Numbers are medians
// of the rounds (least .. largest).
#include <ATen/ops/ones.h>

#include <memory>
#include <numeric>

#include "bench/models.h"
#include "bench/peaks.h"
#include "bench/words.h"
#include "collimate/base/at.h"
#include "collimate/model/model.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::bench {
namespace {

using tensor::ComputeType;
using tensor::Exec;

constexpr int64_t kExperts = 16, kPerToken = 2, kHidden = 512, kInner = 512, kTokens = 512;

void print_line(const std::string& name, const Spread& dense, const Spread& routed) {
  fmt::print("{:40} dense {:>28} ms routed {:>28} ms share {:5.1f} % ({:.1f} .. {:.1f})\n", name, in_ms(dense),
             in_ms(routed), 100 * dense.median / routed.median, 100 * dense.least / routed.largest,
             100 * dense.largest / routed.least);
  std::fflush(stdout);
}

// A Layer has a weight [n, k] for each expert, or a single one, and the rows that are multiplied with them.
class Layer {
 public:
  Layer(const Exec& exec, int64_t experts, int64_t rows, int64_t n, int64_t k, ComputeType type)
      : exec_(exec),
        type_(type),
        rows_(rows),
        n_(n),
        k_(k),
        w_(noise(experts * n * k)),
        dw_(w_.size()),
        x_(noise(rows * k, 2)),
        dx_(x_.size()),
        y_(noise(rows * n, 3)),
        panels_(static_cast<size_t>(experts)) {
    for (int64_t e = 0; e < experts; ++e) {
      auto& packed = base::at(panels_, e);
      tensor::pack_linear(exec, w_.data() + e * n * k, n, k, type, 1, packed);
      pointers_.push_back(&packed);
      values_.push_back(w_.data() + e * n * k);
      gradients_.push_back(dw_.data() + e * n * k);
      starts_.push_back(static_cast<int32_t>(e * rows / experts));
    }
    starts_.push_back(static_cast<int32_t>(rows));
  }

  void forward() {
    if (panels_.size() == 1) return tensor::linear(exec_, x_.data(), k_, rows_, panels_[0], y_.data(), n_);
    tensor::expert_linear(exec_, x_.data(), starts_.data(), pointers_, y_.data());
  }
  void backward() {
    if (panels_.size() == 1) {
      tensor::linear_grad_weight(exec_, type_, y_.data(), n_, x_.data(), k_, rows_, n_, k_, dw_.data());
      return tensor::linear_grad_input(exec_, type_, y_.data(), n_, rows_, w_.data(), n_, k_, dx_.data(), k_);
    }
    tensor::expert_grad_weight(exec_, type_, y_.data(), x_.data(), starts_.data(), n_, k_, gradients_);
    tensor::expert_grad_input(exec_, type_, y_.data(), starts_.data(), values_, n_, k_, dx_.data());
  }

 private:
  Exec exec_;
  ComputeType type_;
  int64_t rows_, n_, k_;
  std::vector<float> w_, dw_, x_, dx_, y_;
  std::vector<tensor::LinearPanels> panels_;
  std::vector<const tensor::LinearPanels*> pointers_;
  std::vector<const float*> values_;
  std::vector<float*> gradients_;
  std::vector<int32_t> starts_;
};

void products(const Exec& exec, ComputeType type, int64_t rows_each, int rounds) {
  const int64_t rows = kExperts * rows_each, tokens = rows / kPerToken;
  Layer up(exec, kExperts, rows, 2 * kInner, kHidden, type), down(exec, kExperts, rows, kHidden, kInner, type);
  Layer dense_up(exec, 1, tokens, 2 * kPerToken * kInner, kHidden, type);
  Layer dense_down(exec, 1, tokens, kHidden, kPerToken * kInner, type);
  for (const bool forward : {true, false}) {
    const auto pass = forward ? &Layer::forward : &Layer::backward;
    const auto both = [&](Layer& a, Layer& b) {
      return std::vector{seconds_per_call([&] {
        (a.*pass)();
        (b.*pass)();
      })};
    };
    const auto spreads =
        take_turns(rounds, {[&] { return both(dense_up, dense_down); }, [&] { return both(up, down); }});
    print_line(fmt::format("products {} {} {} rows", forward ? "forward" : "backward", name_of(type), rows_each),
               spreads[0][0], spreads[1][0]);
  }
}

shape::ModelShape shape_of(bool routed) {
  shape::ModelShape s;
  s.family = routed ? "mixtral" : "llama";
  s.vocabulary = 16000;
  s.max_positions = 2048;
  s.tied_embeddings = true;
  add_blocks(s, kHidden, 8, {.heads = 8, .kv_heads = 8, .head_dim = 64}, kPerToken * kInner);
  for (shape::Block& block : s.blocks)
    if (routed)
      block.mlp.experts = {.count = kExperts, .per_token = kPerToken, .intermediate = kInner, .normalized = true};
  return s;
}

// A Measured is a model with one batch of 4 sequences.
class Measured {
 public:
  Measured(const Exec& exec, bool routed, ComputeType type)
      : weights_(std::make_shared<model::Weights>(shape_of(routed),
                                                  model::WeightsOptions{.trained = true, .compute = type}, exec)),
        model_(weights_, exec) {
    weights_->initialize(7, 0.05F);
    for (int64_t t = 0; t < kTokens; ++t) {
      if (t % (kTokens / 4) == 0) batch_.starts.push_back(static_cast<int32_t>(t));
      batch_.ids.push_back(static_cast<int32_t>(t * 7919 % 16000));
      batch_.positions.push_back(static_cast<int32_t>(t % (kTokens / 4)));
    }
    batch_.starts.push_back(kTokens);
  }
  // Returns the seconds of a forward, and of a training step's forward and backward without the head.
  std::vector<double> sample() {
    const double forward = seconds_per_call([&] { model_.forward(batch_); });
    return {forward, seconds_per_call([&] {
              std::unique_ptr<model::ForwardRecord> record;
              const at::Tensor hidden = model_.forward_train(batch_, model::Recompute::kNone, record);
              model_.backward(std::move(record), at::ones(hidden.sizes(), at::kFloat));
            })};
  }

 private:
  std::shared_ptr<model::Weights> weights_;
  model::Model model_;
  model::TokenBatch batch_;
};

void models(const Exec& exec, ComputeType type, int rounds) {
  Measured dense(exec, false, type), routed(exec, true, type);
  const auto spreads = take_turns(rounds, {[&] { return dense.sample(); }, [&] { return routed.sample(); }});
  for (const size_t part : {0, 1})
    print_line(
        fmt::format("models {} {} {} tokens", part == 0 ? "forward" : "forward and backward", name_of(type), kTokens),
        spreads[0][part], spreads[1][part]);
}

void run(Words words) {
  const std::vector<std::string> parts = words.among({"products", "models"});
  const std::vector<std::string> types = words.among({"float32", "bfloat16"});
  const std::vector<std::string> row_counts = words.among({"8", "32", "128"});
  const Machine machine(words);
  const Exec& exec = machine.exec;
  for (const std::string& type : types)
    for (const std::string& part : parts) {
      const ComputeType compute = tensor::compute_type_of(type);
      if (part == "models") models(exec, compute, words.rounds());
      for (const std::string& rows : row_counts)
        if (part == "products") products(exec, compute, std::stoll(rows), words.rounds());
    }
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_experts", argc, argv, &collimate::bench::run);
}

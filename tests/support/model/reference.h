#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/tensor/autograd.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model::testing {

using shape::Part;

// The model's definition as its shape says it, one sequence at a time, in double: the plain composition that the fused
// layers stand for.
class Reference {
 public:
  explicit Reference(Weights& weights) : shape_(weights.shape()), specs_(weights.params()) {
    for (size_t i = 0; i < specs_.size(); ++i)
      leaves_.push_back(tensor::make_leaf(values_of(weights, static_cast<int>(i)).to(at::kDouble)));
  }

  const std::vector<at::Tensor>& leaves() const { return leaves_; }

  // From now on the tokens of hidden() take these experts, by segment [T, K], in place of the best.
  void force(std::map<int, at::Tensor> experts) { forced_ = std::move(experts); }

  at::Tensor hidden(const std::vector<int32_t>& ids) const {
    const at::Tensor index = at::tensor(ids, at::kLong);
    at::Tensor x = get(Part::kEmbedding, 0).index_select(0, index) * shape_.embedding_scale;
    if (shape_.embedding_width > 0) x = linear(x, Part::kProjectIn, 0);
    if (shape_.learned_positions)
      x = x + get(Part::kPositions, 0).slice(0, shape_.unused_positions, shape_.unused_positions + index.size(0));
    if (shape_.embedding_norm) x = norm(x, Part::kEmbeddingNorm, 0, shape_.blocks.front());
    for (int segment = 1; segment <= last_block(); ++segment) x = block(x, segment);
    if (shape_.final_norm) x = norm(x, Part::kFinalNorm, last_block() + 1, shape_.blocks.back());
    if (shape_.head == shape::Head::kLanguageModel) x = x * shape_.logit_scale;
    return shape_.embedding_width > 0 ? linear(x, Part::kProjectOut, last_block() + 1) : x;
  }

  at::Tensor log_probs(const at::Tensor& hidden, float temperature) const {
    const at::Tensor bias = get(Part::kHead, last_block() + 1, /*bias=*/true);
    return (capped(at::linear(hidden, head(), bias), shape_.logit_softcap) / temperature).log_softmax(-1);
  }
  static at::Tensor capped(const at::Tensor& x, double cap) { return cap > 0 ? (x / cap).tanh() * cap : x; }
  at::Tensor score() const { return get(Part::kScore, last_block() + 1); }

 private:
  int last_block() const { return static_cast<int>(shape_.layers()); }
  at::Tensor head() const {
    return shape_.tied_embeddings ? get(Part::kEmbedding, 0) : get(Part::kHead, last_block() + 1);
  }
  // The weights or biases of a part, one behind another; undefined where there are none.
  at::Tensor get(Part part, int segment, bool bias = false) const {
    std::vector<at::Tensor> all;
    for (size_t i = 0; i < specs_.size(); ++i)
      if (specs_[i].part == part && specs_[i].segment == segment && (specs_[i].kind == shape::ParamKind::kBias) == bias)
        all.push_back(leaves_[i]);
    return all.empty() ? at::Tensor() : at::cat(all);
  }
  at::Tensor linear(const at::Tensor& x, Part part, int segment) const {
    return at::linear(x, get(part, segment), get(part, segment, /*bias=*/true));
  }
  at::Tensor norm(const at::Tensor& x, Part part, int segment, const shape::Block& block) const {
    at::Tensor weight = get(part, segment);
    if (shape::is_offset(block.norm)) weight = weight + 1;
    if (shape::is_centred(block.norm))
      return at::layer_norm(x, {x.size(1)}, weight, get(part, segment, /*bias=*/true), block.norm_epsilon);
    return x * (x.square().mean(-1, true) + static_cast<double>(block.norm_epsilon)).rsqrt() * weight;
  }
  // [T, heads · D] turned by position, half against half of what turns.
  at::Tensor turn(const at::Tensor& x, const shape::Attention& how) const {
    const int64_t half = how.turned() / 2;
    const at::Tensor exponents = at::arange(half, at::kDouble) / static_cast<double>(half);
    const at::Tensor angles = at::arange(x.size(0), at::kDouble).unsqueeze(1) *
                              at::pow(how.rope_theta > 0 ? how.rope_theta : shape_.rope_theta, -exponents).unsqueeze(0);
    const at::Tensor c = angles.cos().unsqueeze(1), s = angles.sin().unsqueeze(1);
    const at::Tensor y = x.view({x.size(0), -1, how.head_dim});
    const at::Tensor a = y.slice(2, 0, half), b = y.slice(2, half, 2 * half), rest = y.slice(2, 2 * half);
    return at::cat({a * c - b * s, b * c + a * s, rest}, 2).reshape(x.sizes());
  }
  at::Tensor norm_of_heads(const at::Tensor& x, Part part, int segment, const shape::Block& block) const {
    if (block.attention.norm_by_head) {
      const at::Tensor heads = x.reshape({x.size(0), -1, block.attention.head_dim});
      return (at::layer_norm(heads, {block.attention.head_dim}, {}, {}, block.norm_epsilon) *
              get(part, segment).view({1, -1, block.attention.head_dim}))
          .reshape_as(x);
    }
    const at::Tensor rows = block.attention.norm_of_all ? x : x.reshape({-1, block.attention.head_dim});
    return norm(rows, part, segment, block).reshape_as(x);
  }
  at::Tensor attention(const at::Tensor& qkv, const shape::Block& block, int segment) const {
    const shape::Attention& how = block.attention;
    const int64_t rows = qkv.size(0);
    std::vector<at::Tensor> parts = qkv.split_with_sizes({how.query_width(), how.kv_width(), how.value_width()}, 1);
    for (const int i : {0, 1}) {
      if (how.rotary && how.norm_behind_turn) parts[i] = turn(parts[i].contiguous(), how);
      if (how.head_norm) parts[i] = norm_of_heads(parts[i], i == 0 ? Part::kQueryNorm : Part::kKeyNorm, segment, block);
      if (how.rotary && !how.norm_behind_turn) parts[i] = turn(parts[i].contiguous(), how);
    }
    const auto split = [&](const at::Tensor& x, int64_t heads) {
      return x.reshape({rows, heads, -1}).transpose(0, 1).repeat_interleave(how.heads / heads, 0);
    };
    at::Tensor scores = split(parts[0], how.heads).matmul(split(parts[1], how.kv_heads).transpose(1, 2));
    scores = scores * (how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(how.head_dim)));
    scores = capped(scores, how.softcap);
    if (how.alibi) {
      const at::Tensor places = at::arange(rows, at::kDouble), heads = at::arange(1, how.heads + 1, at::kDouble);
      const at::Tensor slopes = at::exp2(heads * (-8.0 / static_cast<double>(how.heads)));  // of a power of two
      scores = scores + slopes.view({-1, 1, 1}) * (places.unsqueeze(0) - places.unsqueeze(1));
    }
    at::Tensor unread = at::ones({rows, rows}, at::kBool).triu(1);
    if (how.window > 0) unread = unread.logical_or(at::ones({rows, rows}, at::kBool).tril(-how.window));
    scores = scores.masked_fill(unread, -INFINITY);
    if (how.sinks)
      scores = at::cat({scores, get(Part::kSinks, segment, /*bias=*/true).view({-1, 1, 1}).expand({-1, rows, 1})}, 2);
    const at::Tensor weights = scores.softmax(-1).slice(2, 0, rows);
    return weights.matmul(split(parts[2], how.kv_heads)).transpose(0, 1).reshape({rows, -1});
  }
  // Queries, keys and values of latent attention, whose inner norms have an epsilon of their own.
  at::Tensor latent_heads(const at::Tensor& x, shape::Block block, int segment) const {
    block.norm_epsilon = 1e-6F;
    const shape::Attention& how = block.attention;
    const int64_t rows = x.size(0), turned = how.latent.rope_dim, of_key = how.head_dim - turned;
    at::Tensor read = x;
    if (how.latent.q_rank > 0) read = norm(linear(x, Part::kQueryDown, segment), Part::kQueryDownNorm, segment, block);
    const at::Tensor low = linear(x, Part::kKeyValueDown, segment), shared = low.slice(1, 0, turned);
    const at::Tensor latent = norm(low.slice(1, turned), Part::kKeyValueDownNorm, segment, block);
    const at::Tensor own = linear(latent, Part::kKeyValueUp, segment).reshape({rows, how.heads, -1});
    const at::Tensor keys =
        at::cat({shared.unsqueeze(1).expand({rows, how.heads, turned}), own.slice(2, 0, of_key)}, 2);
    return at::cat(
        {linear(read, Part::kQuery, segment), keys.reshape({rows, -1}), own.slice(2, of_key).reshape({rows, -1})}, 1);
  }
  at::Tensor block(const at::Tensor& x, int segment) const {
    const shape::Block& how = base::at(shape_.blocks, segment - 1);
    const bool after = how.place == shape::NormPlace::kAfter, ahead = shape::has_norm_ahead(how.place);
    const at::Tensor first = ahead ? norm(x, Part::kAttentionNorm, segment, how) : x;
    const bool latent = how.attention.latent.kv_rank > 0;
    const at::Tensor qkv = latent ? latent_heads(first, how, segment) : linear(first, Part::kQueryKeyValue, segment);
    at::Tensor half = linear(attention(qkv, how, segment), Part::kAttentionOutput, segment);
    at::Tensor y = x + added(half, ahead ? Part::kBehindAttention : Part::kAttentionNorm, segment, how);
    if (after) y = norm(y, Part::kAttentionNorm, segment, how);
    at::Tensor read = how.parallel ? x : y;
    if (ahead) read = how.shared_norm ? first : norm(read, Part::kMlpNorm, segment, how);
    if (how.mlp.experts.count > 0) return y + mixture(read, how.mlp, segment) * how.added_scale;
    half = linear(activated(linear(read, Part::kUp, segment), how.mlp), Part::kDown, segment);
    const at::Tensor z = y + added(half, ahead ? Part::kBehindMlp : Part::kMlpNorm, segment, how);
    return after ? norm(z, Part::kMlpNorm, segment, how) : z;
  }
  // The stream gets this of a half.
  at::Tensor added(const at::Tensor& half, Part behind, int segment, const shape::Block& how) const {
    return (shape::has_norm_behind(how.place) ? norm(half, behind, segment, how) : half) * how.added_scale;
  }
  static at::Tensor activated(const at::Tensor& up, const shape::Mlp& how) {
    if (how.activation == shape::Activation::kRelu) return at::relu(up);
    if (how.activation == shape::Activation::kReluSquared) return at::relu(up).square();
    if (!how.gated) return at::gelu(up, how.activation == shape::Activation::kGelu ? "none" : "tanh");
    const std::vector<at::Tensor> halves = up.chunk(2, 1);
    if (how.activation == shape::Activation::kBoundedSwish) {
      const at::Tensor gate = halves[0].clamp_max(how.bound);
      return (halves[1].clamp(-how.bound, how.bound) + 1) * gate * (gate * how.slope).sigmoid();
    }
    return (how.activation == shape::Activation::kSilu ? at::silu(halves[0]) : at::gelu(halves[0], "tanh")) * halves[1];
  }
  // Scores of experts that are not to be chosen become -infinity.
  static at::Tensor in_best_groups(const at::Tensor& scores, const shape::Experts& how) {
    if (how.groups == 1) return scores;
    const at::Tensor by_group = scores.view({scores.size(0), how.groups, -1});
    const at::Tensor totals = std::get<0>(by_group.topk(how.group_best ? 1 : 2, -1)).sum(-1);
    const at::Tensor best = std::get<1>(totals.topk(how.chosen_groups, -1));
    const at::Tensor left_out = at::ones_like(totals, at::kBool).scatter(1, best, false);
    return by_group.masked_fill(left_out.unsqueeze(2), -INFINITY).reshape(scores.sizes());
  }
  // Every token passes every expert, by a weight that is 0 where it did not choose it.
  at::Tensor mixture(const at::Tensor& x, const shape::Mlp& mlp, int segment) const {
    const shape::Experts& how = mlp.experts;
    const at::Tensor bias = get(Part::kRouter, segment, /*bias=*/true);
    const at::Tensor logits = at::linear(x, get(Part::kRouter, segment), how.router_bias ? bias : at::Tensor());
    const at::Tensor scores = how.sigmoid ? logits.sigmoid() : logits.softmax(-1);
    const at::Tensor corrected = how.corrected ? scores + bias : scores;
    at::Tensor best = std::get<1>(in_best_groups(corrected.detach(), how).topk(how.per_token, -1));
    if (const auto forced = forced_.find(segment); forced != forced_.end()) best = forced->second;
    at::Tensor weights = scores * at::zeros_like(scores).scatter(1, best, 1.0);
    if (how.normalized) weights = weights / weights.sum(-1, true);
    weights = weights * how.scale;
    const std::vector<at::Tensor> up = get(Part::kExpertUp, segment).chunk(how.count),
                                  down = get(Part::kExpertDown, segment).chunk(how.count);
    const auto bias_of = [&](Part part, int64_t e) {
      return how.biased ? base::at(get(part, segment, /*bias=*/true).chunk(how.count), e) : at::Tensor();
    };
    at::Tensor sum = at::zeros_like(x);
    for (int64_t e = 0; e < how.count; ++e) {
      const at::Tensor inner = activated(at::linear(x, base::at(up, e), bias_of(Part::kExpertUp, e)), mlp);
      sum = sum + weights.slice(1, e, e + 1) * at::linear(inner, base::at(down, e), bias_of(Part::kExpertDown, e));
    }
    if (how.shared == 0) return sum;
    const at::Tensor shared = linear(activated(linear(x, Part::kUp, segment), {}), Part::kDown, segment);
    return sum + (how.shared_gate ? linear(x, Part::kSharedGate, segment).sigmoid() * shared : shared);
  }

  shape::ModelShape shape_;
  std::vector<shape::ParamSpec> specs_;
  std::vector<at::Tensor> leaves_;
  std::map<int, at::Tensor> forced_;
};

}  // namespace collimate::model::testing

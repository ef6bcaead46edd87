// Gradients of whole models against a plain composition in ATen, in double precision, and against finite differences.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/comm/group.h"
#include "collimate/tensor/autograd.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using shape::Part;
using testing::pack;
using testing::sequences;
using testing::tiny_shape;
using testing::tiny_weights;

// The model's definition as its shape says it, one sequence at a time, in double: the plain composition that the fused
// layers stand for.
class Reference {
 public:
  explicit Reference(Weights& weights) : shape_(weights.shape()), specs_(weights.params()) {
    for (size_t i = 0; i < specs_.size(); ++i)
      leaves_.push_back(tensor::make_leaf(testing::values_of(weights, static_cast<int>(i)).to(at::kDouble)));
  }

  const std::vector<at::Tensor>& leaves() const { return leaves_; }

  at::Tensor hidden(const std::vector<int32_t>& ids) const {
    const at::Tensor index = at::tensor(ids, at::kLong);
    at::Tensor x = get(Part::kEmbedding, 0).index_select(0, index) * shape_.embedding_scale;
    if (shape_.embedding_width > 0) x = linear(x, Part::kProjectIn, 0);
    if (shape_.learned_positions)
      x = x + get(Part::kPositions, 0).slice(0, shape_.unused_positions, shape_.unused_positions + index.size(0));
    if (shape_.embedding_norm) x = norm(x, Part::kEmbeddingNorm, 0, shape_.blocks.front());
    for (int segment = 1; segment <= last_block(); ++segment) x = block(x, segment);
    if (shape_.final_norm) x = norm(x, Part::kFinalNorm, last_block() + 1, shape_.blocks.back());
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
    if (block.norm == shape::NormKind::kRmsOffset) weight = weight + 1;
    if (block.norm == shape::NormKind::kLayer)
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
  at::Tensor attention(const at::Tensor& qkv, const shape::Block& block, int segment) const {
    const shape::Attention& how = block.attention;
    const int64_t rows = qkv.size(0);
    std::vector<at::Tensor> parts = qkv.split_with_sizes({how.query_width(), how.kv_width(), how.kv_width()}, 1);
    for (const int i : {0, 1}) {
      if (!how.head_norm) continue;
      const at::Tensor heads = parts[i].reshape({-1, how.head_dim});
      parts[i] = norm(heads, i == 0 ? Part::kQueryNorm : Part::kKeyNorm, segment, block).reshape_as(parts[i]);
    }
    const auto split = [&](const at::Tensor& x, int64_t heads) {
      return x.reshape({rows, heads, how.head_dim}).transpose(0, 1).repeat_interleave(how.heads / heads, 0);
    };
    const at::Tensor q = how.rotary ? turn(parts[0].contiguous(), how) : parts[0];
    const at::Tensor k = how.rotary ? turn(parts[1].contiguous(), how) : parts[1];
    at::Tensor scores = split(q, how.heads).matmul(split(k, how.kv_heads).transpose(1, 2));
    scores = scores * (how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(how.head_dim)));
    scores = capped(scores, how.softcap);
    if (how.alibi) {
      const at::Tensor places = at::arange(rows, at::kDouble), heads = at::arange(1, how.heads + 1, at::kDouble);
      const at::Tensor slopes = at::exp2(heads * (-8.0 / static_cast<double>(how.heads)));  // of a power of two
      scores = scores + slopes.view({-1, 1, 1}) * (places.unsqueeze(0) - places.unsqueeze(1));
    }
    at::Tensor unread = at::ones({rows, rows}, at::kBool).triu(1);
    if (how.window > 0) unread = unread.logical_or(at::ones({rows, rows}, at::kBool).tril(-how.window));
    const at::Tensor weights = scores.masked_fill(unread, -INFINITY).softmax(-1);
    return weights.matmul(split(parts[2], how.kv_heads)).transpose(0, 1).reshape({rows, -1});
  }
  at::Tensor block(const at::Tensor& x, int segment) const {
    const shape::Block& how = base::at(shape_.blocks, segment - 1);
    const bool after = how.place == shape::NormPlace::kAfter, around = how.place == shape::NormPlace::kAround;
    const at::Tensor first = after ? x : norm(x, Part::kAttentionNorm, segment, how);
    const at::Tensor qkv = linear(first, Part::kQueryKeyValue, segment);
    at::Tensor half = linear(attention(qkv, how, segment), Part::kAttentionOutput, segment);
    at::Tensor y = x + (around ? norm(half, Part::kBehindAttention, segment, how) : half);
    if (after) y = norm(y, Part::kAttentionNorm, segment, how);
    at::Tensor read = how.parallel ? x : y;
    if (!after) read = how.shared_norm ? first : norm(read, Part::kMlpNorm, segment, how);
    if (how.mlp.experts.count > 0) return y + mixture(read, how.mlp.experts, segment);
    half = linear(activated(linear(read, Part::kUp, segment), how.mlp), Part::kDown, segment);
    const at::Tensor z = y + (around ? norm(half, Part::kBehindMlp, segment, how) : half);
    return after ? norm(z, Part::kMlpNorm, segment, how) : z;
  }
  static at::Tensor activated(const at::Tensor& up, const shape::Mlp& how) {
    if (how.activation == shape::Activation::kRelu) return at::relu(up);
    if (!how.gated) return at::gelu(up, how.activation == shape::Activation::kGelu ? "none" : "tanh");
    const std::vector<at::Tensor> halves = up.chunk(2, 1);
    return (how.activation == shape::Activation::kSilu ? at::silu(halves[0]) : at::gelu(halves[0], "tanh")) * halves[1];
  }
  // Scores of experts that are not to be chosen become -infinity.
  static at::Tensor in_best_groups(const at::Tensor& scores, const shape::Experts& how) {
    if (how.groups == 1) return scores;
    const at::Tensor by_group = scores.view({scores.size(0), how.groups, -1});
    const at::Tensor totals = std::get<0>(by_group.topk(2, -1)).sum(-1);
    const at::Tensor best = std::get<1>(totals.topk(how.chosen_groups, -1));
    const at::Tensor left_out = at::ones_like(totals, at::kBool).scatter(1, best, false);
    return by_group.masked_fill(left_out.unsqueeze(2), -INFINITY).reshape(scores.sizes());
  }
  // Every token passes every expert, by a weight that is 0 where it did not choose it.
  at::Tensor mixture(const at::Tensor& x, const shape::Experts& how, int segment) const {
    const at::Tensor logits = at::linear(x, get(Part::kRouter, segment));
    const at::Tensor scores = how.sigmoid ? logits.sigmoid() : logits.softmax(-1);
    const at::Tensor corrected = how.corrected ? scores + get(Part::kRouter, segment, /*bias=*/true) : scores;
    const at::Tensor best = std::get<1>(in_best_groups(corrected.detach(), how).topk(how.per_token, -1));
    at::Tensor weights = scores * at::zeros_like(scores).scatter(1, best, 1.0);
    if (how.normalized) weights = weights / weights.sum(-1, true);
    weights = weights * how.scale;
    const std::vector<at::Tensor> up = get(Part::kExpertUp, segment).chunk(how.count),
                                  down = get(Part::kExpertDown, segment).chunk(how.count);
    at::Tensor sum = at::zeros_like(x);
    for (int64_t e = 0; e < how.count; ++e)
      sum = sum +
            weights.slice(1, e, e + 1) * at::linear(activated(at::linear(x, base::at(up, e)), {}), base::at(down, e));
    if (how.shared == 0) return sum;
    const at::Tensor shared = linear(activated(linear(x, Part::kUp, segment), {}), Part::kDown, segment);
    return sum + (how.shared_gate ? linear(x, Part::kSharedGate, segment).sigmoid() * shared : shared);
  }

  shape::ModelShape shape_;
  std::vector<shape::ParamSpec> specs_;
  std::vector<at::Tensor> leaves_;
};

std::vector<int32_t> targets_of(size_t count) {
  std::vector<int32_t> targets;
  for (size_t i = 0; i < count; ++i) targets.push_back(static_cast<int32_t>((i * 11 + 3) % 37));
  return targets;
}

at::Tensor row_weights(int64_t rows, double phase) { return (at::arange(rows, at::kFloat) * 0.7 + phase).sin(); }

void expect_close(Weights& weights, const std::vector<at::Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& spec = weights.params()[i];
    const at::Tensor mine = testing::gradient_of(weights, static_cast<int>(i));
    const double scale = expected[i].norm().item<double>();
    const double error = (mine.to(at::kDouble) - expected[i]).norm().item<double>();
    EXPECT_LE(error, 3e-6 * scale + 2e-6) << spec.name << " of norm " << scale;
  }
}

class AtenGradients : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  shape::ModelShape shape() const {
    shape::ModelShape s = tiny_shape(std::get<0>(GetParam()));
    if (scored()) s.head = shape::Head::kScore;
    return s;
  }
  bool scored() const { return std::get<1>(GetParam()) == 2; }
  Recompute recompute() const { return std::get<1>(GetParam()) == 1 ? Recompute::kFull : Recompute::kNone; }

  std::vector<std::vector<int32_t>> sequences_ = sequences({19, 5, 33}, 37);
};

// L = Σ a·log p(target) + Σ b·entropy, or Σ a·score, over packed sequences.
TEST_P(AtenGradients, EqualThoseOfAten) {
  auto weights = tiny_weights(shape());
  if (scored()) {
    const tensor::HostEdit head = weights->edit(weights->index_of("score.weight"));
    for (int64_t i = 0; i < shape().table_width(); ++i) head[i] = 0.1F * static_cast<float>(i % 5) - 0.2F;
    weights->commit();
  }
  Model model(weights, {});
  const TokenBatch batch = pack(sequences_);
  const auto rows = static_cast<int64_t>(batch.ids.size());
  const at::Tensor a = row_weights(rows, 0), b = row_weights(rows, 2);
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, recompute(), record);
  const LogProbRequest request{hidden, targets_of(batch.ids.size()), 1.3F, true};
  const at::Tensor hidden_gradient =
      scored() ? model.scores_backward(hidden, a) : model.log_probs_backward(request, a, b);
  model.backward(std::move(record), hidden_gradient);

  const Reference reference(*weights);
  std::vector<at::Tensor> pieces;
  for (const auto& sequence : sequences_) pieces.push_back(reference.hidden(sequence));
  const at::Tensor expected = at::cat(pieces);
  EXPECT_LE((hidden.to(at::kDouble) - expected).abs().max().item<double>(), 2e-5);
  at::Tensor loss;
  if (scored()) {
    loss = (expected.matmul(reference.score().t()).squeeze(1) * a).sum();
  } else {
    const at::Tensor all = reference.log_probs(expected, 1.3F);
    const at::Tensor chosen = all.gather(1, at::tensor(request.targets, at::kLong).unsqueeze(1)).squeeze(1);
    loss = (chosen * a).sum() - (all.exp() * all).sum(-1).mul(b).sum();
    const LogProbResult mine = model.log_probs(request);
    EXPECT_LE((mine.log_probs - chosen).abs().max().item<double>(), 2e-5);
    EXPECT_LE((mine.entropy + (all.exp() * all).sum(-1)).abs().max().item<double>(), 2e-5);
  }
  expect_close(*weights, tensor::gradients_of(loss, reference.leaves()));
}

INSTANTIATE_TEST_SUITE_P(Models, AtenGradients,
                         ::testing::Combine(::testing::ValuesIn(testing::tiny_models()), ::testing::Values(0, 1, 2)));

// A step along the gradient changes the loss by its squared norm.
TEST(ModelGradients, MatchFiniteDifferences) {
  for (const char* family : {"llama", "gpt2"}) {
    auto weights = tiny_weights(tiny_shape(family));
    Model model(weights, {});
    const TokenBatch batch = pack(sequences({17, 4}, 37));
    const auto loss = [&] {
      return model.log_probs({model.forward(batch), targets_of(21)}).log_probs.sum().item<double>();
    };
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model.forward_train(batch, Recompute::kNone, record);
    model.backward(std::move(record),
                   model.log_probs_backward({hidden, targets_of(21)}, at::ones({1}).expand({21}), {}));
    for (int segment = 0; segment < weights->segments(); ++segment) {
      const auto gradient = weights->gradient(segment);
      double norm = 0;
      for (const float g : gradient) norm += static_cast<double>(g) * g;
      const auto shift = [&](double step) {
        for (size_t i = 0; i < gradient.size(); ++i)
          weights->master(segment)[i] += static_cast<float>(step * gradient[i]);
        weights->commit();
        return loss();
      };
      const double step = 2e-3 / std::sqrt(norm);
      const double up = shift(step), down = shift(-2 * step);
      shift(step);
      EXPECT_NEAR((up - down) / (2 * step) / norm, 1.0, 0.02) << family << " segment " << segment;
    }
  }
}

// A segment's gradient is complete when its callback comes.
TEST(ModelGradients, AreCompleteSegmentBySegment) {
  auto weights = tiny_weights(tiny_shape("llama"));
  Model model(weights, {});
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(pack(sequences({17, 4}, 37)), Recompute::kNone, record);
  std::vector<std::vector<float>> seen(4);
  model.backward(std::move(record), hidden, [&](int segment) {
    const auto now = weights->gradient(segment);
    base::at(seen, segment).assign(now.begin(), now.end());
  });
  for (int segment = 0; segment < 4; ++segment) {
    const auto end = weights->gradient(segment);
    EXPECT_EQ(base::at(seen, segment), std::vector<float>(end.begin(), end.end()));
  }
}

// A segment's gradient may be taken away before the next segment's backward begins.
TEST(ModelGradients, OfASegmentMayBeReleasedBeforeTheNextOne) {
  auto weights = tiny_weights(tiny_shape("qwen2"));
  Model model(weights, {});
  std::vector<std::vector<float>> kept, taken(4);
  for (const bool takes : {false, true}) {
    weights->zero_gradients();
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model.forward_train(pack(sequences({17, 4}, 37)), Recompute::kNone, record);
    model.backward(std::move(record), hidden, [&](int segment) {
      const auto now = weights->gradient(segment);
      if (!takes) return;
      base::at(taken, segment).assign(now.begin(), now.end());
      std::fill(now.begin(), now.end(), std::nanf(""));
    });
    for (int segment = 0; segment < 4 && !takes; ++segment) {
      const auto now = weights->gradient(segment);
      kept.emplace_back(now.begin(), now.end());
    }
  }
  EXPECT_EQ(taken, kept);
}

using SegmentGradients = std::vector<std::vector<float>>;

// The gradient of L = Σ a·log p(target) + Σ b·entropy over four sequences, of which each rank of the group computes its
// share: what each segment's callback sums over the ranks and then releases.
SegmentGradients reduced_gradients(const char* family, Recompute recompute, comm::Group& group) {
  const auto all = sequences({19, 5, 33, 12}, 37);
  const auto tokens = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t{0}, [](int64_t n, const auto& s) { return n + std::ssize(s); });
  };
  const int64_t share = std::ssize(all) / group.size();
  const auto mine = all.begin() + group.rank() * share;
  const int64_t first = tokens(all.begin(), mine), last = tokens(all.begin(), mine + share);
  const std::vector<int32_t> targets = targets_of(static_cast<size_t>(tokens(all.begin(), all.end())));
  const at::Tensor a = row_weights(std::ssize(targets), 0), b = row_weights(std::ssize(targets), 2);

  auto weights = tiny_weights(tiny_shape(family));
  Model model(weights, {});
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(pack({mine, mine + share}), recompute, record);
  const LogProbRequest request{hidden, {targets.begin() + first, targets.begin() + last}, 1.3F, true};
  const at::Tensor gradient = model.log_probs_backward(request, a.slice(0, first, last), b.slice(0, first, last));
  SegmentGradients reduced(static_cast<size_t>(weights->segments()));
  model.backward(std::move(record), gradient, [&](int segment) {
    const tensor::HostEdit now = weights->gradient(segment);
    group.all_reduce(now.span()).wait(60.0);
    base::at(reduced, segment).assign(now.begin(), now.end());
    std::fill(now.begin(), now.end(), std::nanf(""));
  });
  return reduced;
}

// Computes them on two ranks that are threads, each with two of the sequences.
std::vector<SegmentGradients> reduced_by_two(const char* family, Recompute recompute) {
  const std::string name = fmt::format("gradient_test {} {}", family, static_cast<int>(recompute));
  std::vector<SegmentGradients> of_rank(2);
  comm::with_ranks(2, name, [&](comm::Group& group) {
    base::at(of_rank, group.rank()) = reduced_gradients(family, recompute, group);
  });
  return of_rank;
}

double norm_of(const std::vector<float>& values, const std::vector<float>& minus) {
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += std::pow(static_cast<double>(values[i]) - minus[i], 2);
  return std::sqrt(sum);
}

// A segment may be reduced over ranks there: two that release theirs at once get what one rank gets from all sequences.
TEST(ModelGradients, OfASegmentMayBeReducedAndReleasedBeforeTheNextOne) {
  for (const char* family : {"llama", "qwen2", "gpt2"})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const SegmentGradients whole = reduced_gradients(family, recompute, *comm::null_group());
      const std::vector<SegmentGradients> of_rank = reduced_by_two(family, recompute);
      EXPECT_EQ(of_rank[0], of_rank[1]) << family;
      ASSERT_EQ(of_rank[0].size(), whole.size());
      for (size_t segment = 0; segment < whole.size(); ++segment) {
        ASSERT_EQ(of_rank[0][segment].size(), whole[segment].size());
        const double norm = norm_of(whole[segment], std::vector<float>(whole[segment].size()));
        EXPECT_GT(norm, 0.01) << family << " segment " << segment;
        EXPECT_LE(norm_of(of_rank[0][segment], whole[segment]), 1e-5 * norm) << family << " segment " << segment;
      }
    }
}

// Two micro-batches add up; bf16 gradients stay near.
TEST(ModelGradients, BfloatComputeStaysNear) {
  std::vector<float> gradients[3];
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot}) {
    auto weights = tiny_weights(tiny_shape("llama"), {true, compute});
    Model model(weights, {});
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model.forward_train(pack(sequences({17, 4}, 37)), Recompute::kNone, record);
    model.backward(std::move(record),
                   model.log_probs_backward({hidden, targets_of(21)}, at::ones({1}).expand({21}), {}));
    gradients[static_cast<int>(compute)] = testing::all_gradients(*weights);
  }
  for (const auto& rounded : {gradients[1], gradients[2]}) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < rounded.size(); ++i) {
      difference += std::pow(static_cast<double>(gradients[0][i] - rounded[i]), 2);
      norm += std::pow(static_cast<double>(gradients[0][i]), 2);
    }
    EXPECT_GT(difference, 0);
    EXPECT_LT(std::sqrt(difference / norm), 0.035);
  }
  EXPECT_NE(gradients[1], gradients[2]) << "both orders are the same one";
}

}  // namespace
}  // namespace collimate::model

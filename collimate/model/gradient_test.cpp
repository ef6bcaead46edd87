// Gradients of whole models against a plain composition in ATen, in double precision, and against finite differences.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/comm/group.h"
#include "collimate/tensor/autograd.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/altered_experts.h"
#include "tests/support/model/edit_weights.h"
#include "tests/support/model/reference.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::on_device;
using testing::pack;
using testing::Reference;
using testing::sequences;
using testing::tiny_shape;
using testing::tiny_weights;

std::vector<int32_t> targets_of(size_t count) {
  std::vector<int32_t> targets;
  for (size_t i = 0; i < count; ++i) targets.push_back(static_cast<int32_t>((i * 11 + 3) % 37));
  return targets;
}

at::Tensor row_weights(int64_t rows, double phase) {
  return on_device((at::arange(rows, at::kFloat) * 0.7 + phase).sin());
}

void expect_close(Weights& weights, const std::vector<at::Tensor>& expected, double tolerance = 3e-6) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto& spec = weights.params()[i];
    const at::Tensor mine = testing::gradient_of(weights, static_cast<int>(i));
    const double scale = expected[i].norm().item<double>();
    const double error = (mine.to(at::kDouble) - expected[i]).norm().item<double>();
    // Latent attention has two norms and two products more in a row; a bounded swish is times 1 + up, which loses bits.
    const shape::Block& block = weights.shape().blocks.front();
    const bool wide = block.attention.latent.kv_rank > 0 || block.mlp.activation == shape::Activation::kBoundedSwish;
    EXPECT_LE(error, (wide ? std::max(tolerance, 1e-5) : tolerance) * scale + 2e-6)
        << spec.name << " of norm " << scale;
  }
}

// As Reference::force takes them.
std::map<int, at::Tensor> by_segment(const RoutedExperts& experts, const shape::ModelShape& shape) {
  const at::Tensor all =
      at::tensor(experts, at::kLong).view({-1, shape::routers_of(shape), shape::experts_of(shape)->per_token});
  std::map<int, at::Tensor> forced;
  for (int64_t block = 0, router = 0; block < shape.layers(); ++block)
    if (shape::has_experts(base::at(shape.blocks, block)))
      forced[static_cast<int>(block) + 1] = all.select(1, router++);
  return forced;
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
    const tensor::HostEdit head = testing::edit_of(*weights, weights->index_of("score.weight"));
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
      scored() ? model.scores_backward(hidden, a) : model.log_probs_backward(request, {a, b});
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

// L = Σ a·h over one sequence, some of whose tokens replay other experts than their own: as a composition that is
// forced to them.
TEST(ModelGradients, OfReplayedRoutesAreThoseOfForcedExperts) {
  for (const char* family : {"mixtral", "qwen2_moe", "deepseek_v2", "deepseek_v3"})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const shape::ModelShape shape = tiny_shape(family);
      auto weights = tiny_weights(shape);
      Model model(weights, {});
      const std::vector<int32_t> ids = sequences({33}, 37).front();
      TokenBatch batch = pack({ids});
      KvCache cache(shape, tensor::KvType::kFloat32, 3);
      const std::vector<int32_t> table = {0, 1, 2};
      const at::Tensor own = model.forward_cached(batch, cache, {&table, 1}, &batch.experts);
      testing::alter_experts(batch.experts, shape, 2);
      batch.replayed = true;
      std::unique_ptr<ForwardRecord> record;
      const at::Tensor hidden = model.forward_train(batch, recompute, record);
      EXPECT_GT((hidden - own).abs().max().item<double>(), 1e-2) << family;
      EXPECT_TRUE(hidden.equal(model.forward(batch))) << family;
      const at::Tensor a = row_weights(hidden.numel(), 0).view_as(hidden);
      model.backward(std::move(record), a);

      Reference reference(*weights);
      reference.force(by_segment(batch.experts, shape));
      const at::Tensor expected = reference.hidden(ids);
      EXPECT_LE((hidden.to(at::kDouble) - expected).abs().max().item<double>(), 2e-5) << family;
      expect_close(*weights, tensor::gradients_of((expected * a).sum(), reference.leaves()), 1e-5);
    }
}

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
                   model.log_probs_backward({hidden, targets_of(21)}, {on_device(at::ones({1})).expand({21})}));
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

TEST(ModelGradients, AreCompleteFromTheHeadOnAndThenOfAdapters) {
  for (const LoraOptions& lora : {LoraOptions(), LoraOptions{.rank = 2}}) {
    auto weights = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = lora});
    Model model(weights, {});
    std::unique_ptr<ForwardRecord> record;
    const at::Tensor hidden = model.forward_train(pack(sequences({5}, 37)), Recompute::kNone, record);
    std::vector<int> order;
    model.backward(std::move(record), hidden, [&](int segment) { order.push_back(segment); });
    EXPECT_EQ(order, lora.on() ? std::vector({3, 2, 1, 0, 4}) : std::vector({3, 2, 1, 0}));
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
  const at::Tensor gradient = model.log_probs_backward(request, {a.slice(0, first, last), b.slice(0, first, last)});
  SegmentGradients reduced(static_cast<size_t>(weights->segments()));
  model.backward(std::move(record), gradient, [&](int segment) {
    const tensor::HostEdit now = weights->gradient(segment);
    group.all_reduce(now.span()).wait(60.0);
    base::at(reduced, segment).assign(now.begin(), now.end());
    std::fill(now.begin(), now.end(), std::nanf(""));
  });
  return reduced;
}

// Computes them on ranks that are threads, each with its share of the sequences.
std::vector<SegmentGradients> reduced_by(int ranks, const char* family, Recompute recompute) {
  const std::string name = fmt::format("gradient_test {} {} {}", ranks, family, static_cast<int>(recompute));
  std::vector<SegmentGradients> of_rank(static_cast<size_t>(ranks));
  comm::with_ranks(ranks, name, [&](comm::Group& group) {
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
      const SegmentGradients whole = reduced_by(1, family, recompute)[0];
      const std::vector<SegmentGradients> of_rank = reduced_by(2, family, recompute);
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
                   model.log_probs_backward({hidden, targets_of(21)}, {on_device(at::ones({1})).expand({21})}));
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

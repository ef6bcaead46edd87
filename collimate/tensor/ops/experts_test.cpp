#include "collimate/tensor/ops/experts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "collimate/base/at.h"
#include "collimate/tensor/autograd.h"
#include "tests/support/tensor/ops/aten_doubles.h"

namespace collimate::tensor {
namespace {

using shape::Experts;

constexpr int64_t kTokens = 53;

const Experts kKinds[] = {
    {.count = 8, .per_token = 2, .normalized = true},
    {.count = 21, .per_token = 5, .scale = 2.5},
    {.count = 12,
     .per_token = 3,
     .sigmoid = true,
     .corrected = true,
     .normalized = true,
     .groups = 4,
     .chosen_groups = 2,
     .scale = 1.5},
    {.count = 3, .per_token = 3, .sigmoid = true},
};

// Memory of what a router gives, and of the rows' order.
struct Answer {
  explicit Answer(const Experts& how, int64_t tokens = kTokens)
      : scores(static_cast<size_t>(tokens * how.count)),
        weights(static_cast<size_t>(tokens * how.per_token)),
        choices(weights.size()),
        starts(static_cast<size_t>(how.count) + 1),
        tokens_of(weights.size()),
        places(weights.size()) {}
  Routed routed() { return {scores.data(), choices.data(), weights.data()}; }
  ExpertRows rows() { return {starts.data(), tokens_of.data(), places.data()}; }

  Floats scores, weights;
  std::vector<int32_t> choices, starts, tokens_of, places;
};

class Routes : public testing::TestWithParam<Experts> {
 protected:
  const Experts& how() const { return GetParam(); }
  // The experts that score least for a token, ascending.
  std::vector<int32_t> least(const Answer& answer, int64_t t) const {
    std::vector<int32_t> order(static_cast<size_t>(how().count));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int32_t e) { return base::at(answer.scores, t * how().count + e); });
    order.resize(static_cast<size_t>(how().per_token));
    std::ranges::sort(order);
    return order;
  }
  Floats logits_ = noise(kTokens * GetParam().count, 1, 2);
  Floats bias_ = noise(GetParam().count, 2, GetParam().corrected ? 0.2F : 0.0F);
};

class SoftmaxRoutes : public Routes {};  // whose load has log sums

// The definition in double; `all` are those from which a token chooses.
at::Tensor weights_of(const Experts& how, const at::Tensor& logits, const at::Tensor& bias, at::Tensor& chosen) {
  const at::Tensor scores = how.sigmoid ? logits.sigmoid() : logits.softmax(-1);
  at::Tensor corrected = (scores + bias).detach();
  if (how.groups > 1) {
    const at::Tensor groups = corrected.view({corrected.size(0), how.groups, -1});
    const at::Tensor best = std::get<1>(std::get<0>(groups.topk(2)).sum(-1).topk(how.chosen_groups));
    const at::Tensor out = at::ones({corrected.size(0), how.groups}, at::kBool).scatter(1, best, false);
    corrected = groups.masked_fill(out.unsqueeze(2), -INFINITY).reshape_as(corrected);
  }
  chosen = std::get<0>(std::get<1>(corrected.topk(how.per_token)).sort(-1));
  const at::Tensor weights = scores.gather(1, chosen);
  return how.scale * (how.normalized ? weights / weights.sum(-1, true) : weights);
}

TEST_P(Routes, ChoicesWeightsAndGradientsAreAtens) {
  Answer answer(how());
  const Floats dweights = noise(kTokens * how().per_token, 3);
  const Floats got = same_everywhere([&](const Exec& exec) {
    Floats out(static_cast<size_t>(kTokens * how().count));
    route(exec, how(), logits_.data(), kTokens, how().corrected ? bias_.data() : nullptr, answer.routed());
    route_backward(exec, how(), answer.routed(), kTokens, dweights.data(), {}, out.data());
    out.insert(out.end(), answer.weights.begin(), answer.weights.end());
    return out;
  });
  const at::Tensor leaf = make_leaf(doubles(logits_, {kTokens, how().count}));
  at::Tensor chosen;
  const at::Tensor want = weights_of(how(), leaf, doubles(bias_, {how().count}), chosen);
  EXPECT_TRUE(chosen.equal(at::tensor(answer.choices, at::kLong).view_as(chosen)));
  EXPECT_LT((doubles(answer.weights, want.sizes()) - want).abs().max().item<double>(), 1e-6);
  const at::Tensor gradient = gradients_of(want, doubles(dweights, want.sizes()), {leaf})[0];
  const Floats dlogits(got.begin(), got.begin() + kTokens * how().count);
  EXPECT_LT((doubles(dlogits, gradient.sizes()) - gradient).abs().max().item<double>(), 2e-6);
}

// L = Σ count (slope · scores + 0.3 (log Σ exp)²), beside nothing of the weights.
TEST_P(SoftmaxRoutes, LoadAndTheGradientOfItsLossAreAtens) {
  Answer answer(how());
  Floats counts = noise(kTokens, 4), log_sums(static_cast<size_t>(kTokens));
  for (float& count : counts) count = std::floor(3 * std::abs(count));
  const Floats slopes = noise(how().count, 5), none = constant(kTokens * how().per_token, 0);
  Routed routed = answer.routed();
  routed.log_sums = log_sums.data();
  const Floats got = same_everywhere([&](const Exec& exec) {
    Floats out = constant(2 * how().count + 1 + kTokens * how().count, 0);
    route(exec, how(), logits_.data(), kTokens, nullptr, routed);
    measure_routes(exec, how(), routed, kTokens, counts.data(), out.data());
    route_backward(exec, how(), routed, kTokens, none.data(), {counts.data(), slopes.data(), 0.3F},
                   out.data() + 2 * how().count + 1);
    return out;
  });
  const at::Tensor leaf = make_leaf(doubles(logits_, {kTokens, how().count}));
  const at::Tensor times = doubles(counts, {kTokens, 1}), scores = (leaf.softmax(-1) * times).sum(0);
  const at::Tensor squares = (leaf.logsumexp(-1).square() * times.squeeze(1)).sum();
  const at::Tensor chosen = at::tensor(answer.choices, at::kLong).view({kTokens, how().per_token});
  const at::Tensor rows = at::zeros({kTokens, how().count}, at::kDouble).scatter(1, chosen, 1.0);
  const at::Tensor loss = (scores * doubles(slopes, {how().count})).sum() + 0.3 * squares;
  const at::Tensor load = at::cat({(rows * times).sum(0), scores.detach(), squares.detach().view({1})});
  const at::Tensor want = at::cat({load, gradients_of(loss, {leaf})[0].flatten()});
  EXPECT_LT(((doubles(got, want.sizes()) - want).abs() / (1 + want.abs())).max().item<double>(), 1e-5);
}

TEST(RouteBackward, ALossOfTheLoadNeedsLogSums) {
  const Experts how{.count = 2, .per_token = 1, .sigmoid = true};
  Answer answer(how);
  const Floats counts = constant(kTokens, 1), slopes = constant(2, 1), dweights = constant(kTokens, 0);
  Floats out = constant(2 * kTokens, 0);
  const LoadSlopes loss{counts.data(), slopes.data(), 0.1F};
  EXPECT_THROW(route_backward({}, how, answer.routed(), kTokens, dweights.data(), loss, out.data()), std::logic_error);
}

// Every third token replays the experts with the least scores, every third what it chose, and the others have none.
TEST_P(Routes, RecordedChoicesTakeThePlaceOfOwnOnes) {
  Answer answer(how());
  const float* bias = how().corrected ? bias_.data() : nullptr;
  route({}, how(), logits_.data(), kTokens, bias, answer.routed());
  const Answer own = answer;
  std::vector<int32_t> recorded = own.choices, differ(kTokens);
  for (int64_t t = 0; t < kTokens; ++t) {
    const auto of_token = recorded.begin() + t * how().per_token;
    if (t % 3 == 1) std::fill_n(of_token, how().per_token, -1);
    if (t % 3 == 2) std::copy_n(least(own, t).begin(), how().per_token, of_token);
  }
  replay_routes({}, how(), {recorded.data(), false, differ.data()}, kTokens, answer.routed());
  EXPECT_EQ(answer.choices, own.choices) << "they are only compared";
  const bool others = how().per_token < how().count;
  for (int64_t t = 0; t < kTokens; ++t) EXPECT_EQ(base::at(differ, t), others && t % 3 == 2 ? 1 : 0) << t;

  const Floats dweights = noise(kTokens * how().per_token, 3);
  const Floats got = same_everywhere([&](const Exec& exec) {
    Floats out(static_cast<size_t>(kTokens * how().count));
    route(exec, how(), logits_.data(), kTokens, bias, answer.routed());
    replay_routes(exec, how(), {recorded.data(), true, differ.data()}, kTokens, answer.routed());
    route_backward(exec, how(), answer.routed(), kTokens, dweights.data(), {}, out.data());
    return out;
  });
  for (int64_t i = 0; i < std::ssize(recorded); ++i)
    if (base::at(recorded, i) < 0) base::at(recorded, i) = base::at(own.choices, i);
  EXPECT_EQ(answer.choices, recorded);
  const at::Tensor leaf = make_leaf(doubles(logits_, {kTokens, how().count}));
  const at::Tensor scores = how().sigmoid ? leaf.sigmoid() : leaf.softmax(-1);
  at::Tensor want = scores.gather(1, at::tensor(recorded, at::kLong).view({kTokens, -1}));
  want = how().scale * (how().normalized ? want / want.sum(-1, true) : want);
  EXPECT_LT((doubles(answer.weights, want.sizes()) - want).abs().max().item<double>(), 1e-6);
  const at::Tensor gradient = gradients_of(want, doubles(dweights, want.sizes()), {leaf})[0];
  EXPECT_LT(((doubles(got, gradient.sizes()) - gradient).abs() / (1 + gradient.abs())).max().item<double>(), 1e-5);
}

TEST_P(Routes, ATokenIsRoutedAsItIsAlone) {
  Answer all(how()), one(how(), 1);
  const float* bias = how().corrected ? bias_.data() : nullptr;
  route({}, how(), logits_.data(), kTokens, bias, all.routed());
  for (int64_t t = 0; t < kTokens; ++t) {
    route({}, how(), logits_.data() + t * how().count, 1, bias, one.routed());
    EXPECT_TRUE(std::equal(one.choices.begin(), one.choices.end(), all.choices.begin() + t * how().per_token));
    EXPECT_TRUE(std::equal(one.weights.begin(), one.weights.end(), all.weights.begin() + t * how().per_token));
  }
}

// Each expert's rows lie together, by token, and every choice is found again.
TEST_P(Routes, RowsAreSortedByExpert) {
  Answer answer(how());
  route({}, how(), logits_.data(), kTokens, nullptr, answer.routed());
  sort_by_expert({}, how(), answer.choices.data(), kTokens, answer.rows());
  EXPECT_EQ(answer.starts.front(), 0);
  EXPECT_EQ(answer.starts.back(), kTokens * how().per_token);
  for (int64_t i = 0; i < kTokens * how().per_token; ++i) {
    const int32_t expert = base::at(answer.choices, i), row = base::at(answer.places, i);
    EXPECT_EQ(base::at(answer.tokens_of, row), i / how().per_token);
    EXPECT_GE(row, base::at(answer.starts, expert));
    EXPECT_LT(row, base::at(answer.starts, expert + 1));
  }
  for (int64_t e = 0; e < how().count; ++e)
    EXPECT_TRUE(std::is_sorted(answer.tokens_of.begin() + base::at(answer.starts, e),
                               answer.tokens_of.begin() + base::at(answer.starts, e + 1)));
}

std::string kind_name(const testing::TestParamInfo<Experts>& kind) { return "of_" + std::to_string(kind.param.count); }
std::vector<Experts> softmax_kinds() {
  std::vector<Experts> kinds(std::begin(kKinds), std::end(kKinds));
  std::erase_if(kinds, [](const Experts& how) { return how.sigmoid; });
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Kinds, Routes, testing::ValuesIn(kKinds), kind_name);
INSTANTIATE_TEST_SUITE_P(Kinds, SoftmaxRoutes, testing::ValuesIn(softmax_kinds()), kind_name);

TEST(Route, OfEqualScoresTheLowerExpertIsChosenAndNoneThatIsNaN) {
  const Experts how = {.count = 5, .per_token = 2};
  Answer answer(how, 1);
  const auto choices = [&](const Floats& logits, const Floats& bias) {
    route({}, how, logits.data(), 1, bias.data(), answer.routed());
    return answer.choices;
  };
  EXPECT_EQ(choices({1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(choices({1, 3, 2, 3, 2}, {0, 0, 0, 0, 0}), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(choices({1, 3, 2, 3, 2}, {0, std::numeric_limits<float>::quiet_NaN(), 0, 0, 9}),
            (std::vector<int32_t>{3, 4}));
}

// Experts of many rows, few, one and none; the last of them large enough for several threads.
class Products : public testing::TestWithParam<ComputeType> {
 protected:
  static constexpr int64_t kN = 96, kK = 131;
  std::vector<int32_t> starts_ = {0, 41, 41, 42, 49, 229};
  int64_t rows_ = starts_.back(), experts_ = static_cast<int64_t>(starts_.size()) - 1;
  Floats x_ = noise(rows_ * kK, 1), dy_ = noise(rows_ * kN, 2), w_ = noise(experts_ * kN * kK, 3);
  const float* of(int64_t expert) const { return w_.data() + expert * kN * kK; }
};

class TrainedProducts : public Products {};  // of types that are trained

TEST_P(Products, RowsHaveTheBitsOfALinearLayer) {
  same_everywhere([&](const Exec& exec) {
    std::vector<LinearPanels> panels(static_cast<size_t>(experts_));
    std::vector<const LinearPanels*> pointers;
    Floats y = nans(rows_ * kN), alone = nans(rows_ * kN);
    for (int64_t e = 0; e < experts_; ++e) {
      LinearPanels& packed = base::at(panels, e);
      pack_linear(exec, of(e), kN, kK, GetParam(), 2, packed);
      pointers.push_back(&packed);
      for (int64_t row = base::at(starts_, e); row < base::at(starts_, e + 1); ++row)
        linear(exec, x_.data() + row * kK, kK, 1, packed, alone.data() + row * kN, kN);
    }
    expert_linear(exec, x_.data(), starts_.data(), pointers, y.data());
    EXPECT_TRUE(same_bits(y, alone));
    return y;
  });
}

TEST_P(TrainedProducts, GradientsHaveTheBitsOfALinearLayers) {
  same_everywhere([&](const Exec& exec) {
    Floats dx = nans(rows_ * kK), dx_alone = dx, dw = constant(experts_ * kN * kK, 0.25F), dw_alone = dw;
    std::vector<const float*> w;
    std::vector<float*> gradients;
    for (int64_t e = 0; e < experts_; ++e) {
      w.push_back(of(e));
      gradients.push_back(dw.data() + e * kN * kK);
      const int64_t first = base::at(starts_, e), rows = base::at(starts_, e + 1) - first;
      const float* dy = dy_.data() + first * kN;
      linear_grad_input(exec, GetParam(), dy, kN, rows, of(e), kN, kK, dx_alone.data() + first * kK, kK);
      linear_grad_weight(exec, GetParam(), dy, kN, x_.data() + first * kK, kK, rows, kN, kK,
                         dw_alone.data() + e * kN * kK);
    }
    expert_grad_input(exec, GetParam(), dy_.data(), starts_.data(), w, kN, kK, dx.data());
    expert_grad_weight(exec, GetParam(), dy_.data(), x_.data(), starts_.data(), kN, kK, gradients);
    EXPECT_TRUE(same_bits(dx, dx_alone));
    EXPECT_TRUE(same_bits(dw, dw_alone));
    dx.insert(dx.end(), dw.begin(), dw.end());
    return dx;
  });
}

TEST_P(Products, EachRowGetsTheBiasOfItsExpert) {
  const Floats biases = noise(experts_ * kN, 4);
  const Floats got = same_everywhere([&](const Exec& exec) {
    Floats out = dy_, db = constant(experts_ * kN, 0.25F);
    std::vector<const float*> values;
    std::vector<float*> gradients;
    for (int64_t e = 0; e < experts_; ++e) {
      values.push_back(biases.data() + e * kN);
      gradients.push_back(db.data() + e * kN);
    }
    add_expert_bias(exec, starts_.data(), values, kN, out.data());
    expert_grad_bias(exec, dy_.data(), starts_.data(), kN, gradients);
    out.insert(out.end(), db.begin(), db.end());
    return out;
  });
  const at::Tensor dy = doubles(dy_, {rows_, kN}), b = doubles(biases, {experts_, kN});
  for (int64_t e = 0; e < experts_; ++e) {
    const int64_t first = base::at(starts_, e), end = base::at(starts_, e + 1);
    const at::Tensor rows = doubles(got, {rows_ + experts_, kN});
    EXPECT_LT((rows.slice(0, rows_ + e, rows_ + e + 1) - dy.slice(0, first, end).sum(0, true) - 0.25)
                  .abs()
                  .max()
                  .item<double>(),
              1e-4)
        << e;
    if (first == end) continue;
    EXPECT_LT((rows.slice(0, first, end) - dy.slice(0, first, end) - b.slice(0, e, e + 1)).abs().max().item<double>(),
              1e-6)
        << e;
  }
}

std::string product_type(const testing::TestParamInfo<ComputeType>& type) { return std::string(name_of(type.param)); }
INSTANTIATE_TEST_SUITE_P(Types, Products,
                         testing::Values(ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot,
                                         ComputeType::kInt8),
                         product_type);
INSTANTIATE_TEST_SUITE_P(Types, TrainedProducts,
                         testing::Values(ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot),
                         product_type);

TEST(CombineExperts, SumAndGradientsAreAtens) {
  for (const int64_t per_token : {1, 3}) {
    const int64_t width = 37, rows = kTokens * per_token;
    std::vector<int32_t> places(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) base::at(places, i) = static_cast<int32_t>(i * 7 % rows);
    const Floats y = noise(rows * width, 1), weights = noise(rows, 2), dout = noise(kTokens * width, 3);
    const Combination how{places.data(), weights.data(), kTokens, per_token, width};
    const Floats got = same_everywhere([&](const Exec& exec) {
      Floats out = constant(kTokens * width + rows * width + rows, 0.25F);
      float* dy = out.data() + kTokens * width;
      combine_experts(exec, how, y.data(), out.data());
      combine_experts_backward(exec, how, dout.data(), y.data(), dy, dy + rows * width);
      return out;
    });
    const at::Tensor y_leaf = make_leaf(doubles(y, {rows, width})), w_leaf = make_leaf(doubles(weights, {rows}));
    const at::Tensor chosen = y_leaf.index_select(0, at::tensor(places, at::kLong)) * w_leaf.unsqueeze(1);
    const at::Tensor want = chosen.view({kTokens, per_token, width}).sum(1);
    const auto d = gradients_of(want, doubles(dout, want.sizes()), {y_leaf, w_leaf});
    const at::Tensor all = at::cat({want.detach().flatten() + 0.25, d[0].flatten(), d[1]});
    EXPECT_LT((doubles(got, all.sizes()) - all).abs().max().item<double>(), 1e-5);
  }
}

}  // namespace
}  // namespace collimate::tensor

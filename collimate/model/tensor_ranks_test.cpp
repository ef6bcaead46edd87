// Tensor ranks against one rank: the bits of every forward, gradients, files.
#include "collimate/model/tensor_ranks.h"

#include "collimate/tensor/ops/listed.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/near_gradient.h"
#include "tests/support/model/rank_passes.h"

namespace collimate::model {
namespace {

using namespace testing;  // NOLINT: test only

std::vector<float> random_like(const at::Tensor& hidden) {
  std::vector<float> values;
  for (int64_t i = 0; i < hidden.numel(); ++i) values.push_back(std::sin(static_cast<float>(i) * 0.9F));
  return values;
}

at::Tensor tensor_like(const at::Tensor& hidden, std::vector<float> values) {
  at::Tensor out = at::empty(hidden.sizes(), at::kFloat);
  std::copy(values.begin(), values.end(), out.data_ptr<float>());
  return on_device(out);
}

// Tests take every small model, as it is and with adapters. Its sums are of as many chunks as there are ranks: 2, which
// have parts of the vocabulary, or 4, of which some have the same key-value heads.
class TensorParity : public ::testing::TestWithParam<std::tuple<std::string, bool, int>> {
 protected:
  static int ranks() { return std::get<2>(GetParam()); }
  void on_each(const WeightsOptions& whole, const std::function<void(const WeightsOptions&)>& body) const {
    on_ranks(ranks(), &ModelRanks::tensor, whole, body);
  }
  WeightsOptions options(ComputeType compute = ComputeType::kFloat32) const {
    return {.trained = true,
            .compute = compute,
            .reduction_chunks = ranks(),
            .lora = {.rank = std::get<1>(GetParam()) ? 3 : 0, .alpha = 2}};
  }
  // Adapters of training drop some of their inputs.
  static WeightsOptions dropping(WeightsOptions options) {
    if (options.lora.on()) options.lora.dropout = 0.3;
    return options;
  }
  static TokenBatch with_noise(const TokenBatch& batch) { return std::get<1>(GetParam()) ? noisy(batch) : batch; }
  // 128 tokens on the first rank, 3 on the other.
  static shape::ModelShape shape_of(const std::string& name) {
    shape::ModelShape shape = tiny_shape(name);
    shape.vocabulary = 131;
    return shape;
  }
  // The log-probs of tokens of both ranks.
  static LogProbRequest request(const at::Tensor& hidden, bool record) {
    LogProbRequest asked{.hidden = hidden, .temperature = 0.7F, .entropy = true, .record = record};
    for (int32_t i = 0; i < hidden.size(0); ++i) asked.targets.push_back(i % 5 == 0 ? 130 - i % 3 : i % 128);
    return asked;
  }

  shape::ModelShape shape_ = shape_of(std::get<0>(GetParam()));
  TokenBatch batch_ = pack(sequences({33, 1, 16, 50, 17}, 37));
};

TEST_P(TensorParity, ForwardsHaveTheBitsOfOneRank) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot, ComputeType::kBFloat16Amx}) {
    Model one(tiny_weights(shape_, options(compute)), {});
    const auto expected = to_vector(one.forward(batch_));
    on_each(options(compute), [&](const WeightsOptions& mine) {
      Model model(tiny_weights(shape_, mine), {});
      EXPECT_EQ(to_vector(model.forward(batch_)), expected);
      std::unique_ptr<ForwardRecord> record;
      EXPECT_EQ(to_vector(model.forward_train(batch_, Recompute::kNone, record)), expected);
      EXPECT_EQ(to_vector(model.forward_train(batch_, Recompute::kFull, record)), expected);
      KvCache cache(model.shape(), kv_type(compute), 20);
      const std::vector<std::vector<int32_t>> tables = {{3, 1, 4}, {5}, {9, 2}, {6, 0, 7, 8}, {11, 10}};
      EXPECT_EQ(to_vector(model.forward_cached(batch_, cache, tables)), expected);
    });
  }
}

TEST_P(TensorParity, LogProbsHaveTheBitsOfOneRank) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Amx}) {
    Model one(tiny_weights(shape_, options(compute)), {});
    const at::Tensor hidden = one.forward(batch_);
    const LogProbResult expected = one.log_probs(request(hidden, true));
    const auto logits = to_vector(one.logits(hidden));
    on_each(options(compute), [&](const WeightsOptions& mine) {
      Model model(tiny_weights(shape_, mine), {});
      if (ranks() == 2) {
        EXPECT_EQ(model.weights().params().front().sizes[0], mine.ranks.tensor.place.rank == 0 ? 128 : 3);
      }
      EXPECT_EQ(to_vector(model.logits(hidden)), logits);
      for (const bool record : {false, true}) {
        const LogProbResult result = model.log_probs(request(hidden, record));
        EXPECT_EQ(to_vector(result.log_probs), to_vector(expected.log_probs));
        EXPECT_EQ(to_vector(result.entropy), to_vector(expected.entropy));
        EXPECT_EQ(to_vector(result.argmax.to(at::kFloat)), to_vector(expected.argmax.to(at::kFloat)));
        if (!record) continue;
        EXPECT_EQ(to_vector(result.record.normalizers), to_vector(expected.record.normalizers));
      }
    });
  }
}

// Likely tokens lie on both ranks, and so do listed ones; a list of the whole vocabulary has no rest.
TEST_P(TensorParity, ListedTokensAreThoseOfOneRank) {
  const auto one = tiny_weights(shape_, options());
  Model single(one, {});
  const at::Tensor hidden = single.forward(batch_);
  for (const int64_t count : {5, 131}) {
    LogProbRequest likely = request(hidden, true), given = request(hidden, true);
    likely.listed_count = given.listed_count = count;
    for (int64_t row = 0; row < hidden.size(0); ++row)
      for (int32_t k = 0; k < count; ++k)
        given.listed_ids.push_back(count == 131 ? k : 30 * k + static_cast<int32_t>(row % 11));
    const auto outcome = [&](Model& model, const LogProbRequest& asked) {
      const LogProbResult result = model.log_probs(asked);
      const at::Tensor slopes = tensor_like(result.listed, random_like(result.listed)),
                       rest = tensor_like(result.rest, random_like(result.rest));
      model.weights().zero_gradients();
      const at::Tensor gradient = model.log_probs_backward(asked, {rest, {}, slopes, rest}, result.record);
      return std::tuple(to_vector(result.listed_ids.to(at::kFloat)), to_vector(result.listed), to_vector(result.rest),
                        to_vector(gradient));
    };
    for (const LogProbRequest& asked : {likely, given}) {
      const auto [ids, listed, rest, gradient] = outcome(single, asked);
      EXPECT_EQ(rest[0] == tensor::kLeastRest, count == 131);
      const auto compare = [&, &ids = ids, &listed = listed, &rest = rest, &gradient = gradient](const auto& mine) {
        Model model(tiny_weights(shape_, mine), {});
        const auto [own_ids, own_listed, own_rest, own_gradient] = outcome(model, asked);
        EXPECT_EQ(own_ids, ids);
        EXPECT_EQ(own_listed, listed);
        EXPECT_EQ(own_rest, rest);
        expect_near_gradient(gradient, own_gradient, "hidden states");
      };
      on_each(options(), compare);
    }
  }
}

// Ranks that share a vocabulary find the most likely tokens of each row, as a server shows them for a prompt.
TEST_P(TensorParity, MostLikelyTokensAreThoseOfOneRank) {
  const auto one = tiny_weights(shape_, options());
  Model single(one, {});
  LogProbRequest asked = request(single.forward(batch_), false);
  asked.top_count = 5;
  const std::vector<tensor::TokenLogProb> expected = single.log_probs(asked).top;
  on_each(options(), [&](const auto& mine) {
    Model model(tiny_weights(shape_, mine), {});
    const std::vector<tensor::TokenLogProb> top = model.log_probs(asked).top;
    ASSERT_EQ(top.size(), expected.size());
    for (size_t i = 0; i < top.size(); ++i) {
      EXPECT_EQ(top[i].token, expected[i].token) << i;
      EXPECT_EQ(top[i].log_prob, expected[i].log_prob) << i;
    }
  });
}

TEST_P(TensorParity, GradientsAreThoseOfOneRank) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const auto one = tiny_weights(shape_, dropping(options()));
    const auto train = [&](const std::shared_ptr<Weights>& weights) {
      Model model(weights, {});
      std::unique_ptr<ForwardRecord> record;
      const at::Tensor hidden = model.forward_train(with_noise(batch_), recompute, record);
      const LogProbRequest asked = request(hidden, recompute == Recompute::kNone);
      const LogProbResult result = model.log_probs(asked);
      const at::Tensor slopes = tensor_like(result.log_probs, random_like(result.log_probs));
      model.backward(std::move(record),
                     model.log_probs_backward(asked, {slopes, slopes}, asked.record ? result.record : LogProbRecord()));
    };
    train(one);
    on_each(dropping(options()), [&](const WeightsOptions& mine) {
      const auto weights = tiny_weights(shape_, mine);
      train(weights);
      for (int i = 0; i < static_cast<int>(weights->params().size()); ++i) {
        const auto is_copied = [](const shape::Piece& piece) { return piece.copies > 1; };
        if (!weights->trains(i) || std::ranges::any_of(base::at(weights->params(), i).pieces, is_copied)) continue;
        const auto expected = one->gradient_of(i), own = weights->gradient_of(i);
        const shape::ParamSpec& whole = base::at(weights->whole_params(), i);
        const auto given = mine.ranks.tensor.gather(whole, {own.begin(), own.end()});
        if (mine.ranks.tensor.place.rank == 0)
          expect_near_gradient({expected.begin(), expected.end()}, given, whole.name);
        if (base::at(weights->params(), i).cut >= 0) continue;
        std::vector<float> summed(own.begin(), own.end());
        mine.ranks.tensor.sum(summed);
        for (size_t j = 0; j < summed.size(); ++j)
          EXPECT_EQ(summed[j], static_cast<float>(ranks()) * own[j]) << whole.name;
      }
    });
  }
}

bool has_norm_of_all(const std::string& name) { return tiny_shape(name).blocks.front().attention.norm_of_all; }

std::vector<std::string> models_to_cut() {
  std::vector<std::string> names = testing::tiny_models();
  std::erase_if(names, has_norm_of_all);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, TensorParity,
                         ::testing::Combine(::testing::ValuesIn(models_to_cut()), ::testing::Bool(),
                                            ::testing::Values(2, 4)));

TEST(TensorRanks, ModelsWithANormOfAllHeadsAreNotCut) {
  for (const std::string& name : testing::tiny_models()) {
    if (has_norm_of_all(name)) {
      EXPECT_EQ(base::message_of([&] {
                  shape::local_shape(tiny_shape(name), {.tensor = {0, 2}}, "m");
                }),
                "[m] expected tp 1, as the norms of queries and keys are of all heads together, got tp 2; try pp, cp, "
                "zero or dp");
    }
  }
}

using TensorFiles = testing::InDirectory;

// Files that ranks write together and that one rank writes are the same; ranks read their pieces of them.
TEST_F(TensorFiles, AreThoseOfOneRank) {
  for (const char* family : {"llama", "gpt2", "gpt_neox", "mixtral", "deepseek_v3"})
    for (const int ranks : {2, 4}) expect_files_of_one_rank(family, directory_, &ModelRanks::tensor, ranks);
}

TEST_F(TensorFiles, OfAdaptersAreThoseOfOneRank) { expect_adapter_files_of_one_rank(directory_, &ModelRanks::tensor); }

TEST(TensorRanks, HeadsThatDoNotDivideAreNamed) {
  const WeightsOptions options{.trained = true, .tag = "policy", .ranks = {.tensor = {{}, {0, 3}}}};
  EXPECT_EQ(
      base::message_of([&] { Weights(tiny_shape("llama"), options, {}); }),
      "[weights of policy] expected a tp that divides the model's 4 attention heads, got tp 3; try another tp, or dp");
}

}  // namespace
}  // namespace collimate::model

// Context ranks against one rank: who has which tokens, the bits of forwards, gradients.
#include "collimate/model/context_cut.h"

#include <set>

#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::on_device;
using testing::pack;
using testing::sequences;
using testing::tiny_shape;
using testing::tiny_weights;
using testing::to_vector;

using shape::ContextKind;

ContextRanks rank_of(comm::Group& group, ContextKind kind) {
  return {{&group, comm::kDeadlineOfRanks}, group.rank(), group.size(), kind};
}

// body(the batch with its cut) on each rank, ranks being threads.
void on_context_ranks(int ranks, ContextKind kind, const TokenBatch& batch,
                      const std::function<void(const TokenBatch&)>& body) {
  static int run = 0;
  comm::with_ranks(ranks, fmt::format("context_cut_test {}", run++), [&](comm::Group& group) {
    TokenBatch mine = batch;
    mine.cut = std::make_shared<ContextCut>(batch.starts, rank_of(group, kind));
    body(mine);
  });
}

// Key and value reads of a rank's tokens.
int64_t work_of(const ContextCut& cut, const std::vector<int32_t>& starts) {
  int64_t work = 0;
  for (const TokenPiece& piece : cut.pieces())
    for (int64_t t = 0; t < piece.tokens; ++t) work += piece.first + t - base::at(starts, piece.sequence) + 1;
  return work;
}

TEST(ContextCut, RanksHaveEachTokenOnceAndAsMuchToDo) {
  for (const std::vector<int>& lengths :
       {std::vector<int>{1}, {1000}, {33, 1, 16, 50, 17, 2, 3}, {400, 7, 900, 1, 61}}) {
    std::vector<int32_t> starts = {0};
    for (const int length : lengths) starts.push_back(starts.back() + length);
    for (const int ranks : {1, 2, 3, 4, 8}) {
      std::set<int32_t> seen;
      int64_t fewest = starts.back(), most = 0, least_work = INT64_MAX, most_work = 0, ahead = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ContextCut cut(starts, {.rank = rank, .ranks = ranks});
        seen.insert(cut.own().begin(), cut.own().end());
        fewest = std::min(fewest, cut.own_rows()), most = std::max(most, cut.own_rows());
        least_work = std::min(least_work, work_of(cut, starts)), most_work = std::max(most_work, work_of(cut, starts));
        EXPECT_EQ(cut.most_rows(), (starts.back() + ranks - 1) / ranks);
        for (int64_t i = 0; i < cut.own_rows(); ++i) {
          EXPECT_EQ(cut.owner(base::at(cut.own(), i)), rank);
          EXPECT_EQ(cut.row_there(base::at(cut.own(), i)), i);
          EXPECT_EQ(base::at(cut.rows(), rank * cut.most_rows() + i), base::at(cut.own(), i));
          EXPECT_EQ(base::at(cut.in_turn(), ahead + i), base::at(cut.own(), i));
          EXPECT_EQ(base::at(cut.turns(), base::at(cut.own(), i)), ahead + i);
        }
        EXPECT_EQ(cut.rows_of(rank), cut.own_rows());
        ahead += cut.own_rows();
      }
      EXPECT_EQ(static_cast<int32_t>(seen.size()), starts.back());
      EXPECT_LE(most - fewest, 1) << ranks;
      if (starts.back() >= 1000) {
        EXPECT_LT(most_work, 1.05 * static_cast<double>(least_work)) << ranks;
      }
    }
  }
}

// A batch of whole sequences, of one that two others continue, and of one that begins at a later position.
TokenBatch batch_of(int vocabulary) {
  TokenBatch batch = pack(sequences({33, 1, 39, 20, 9, 16}, vocabulary));
  batch.continued = {-1, -1, -1, 2, 2, -1};
  for (int32_t row = batch.starts[3]; row < batch.starts[5]; ++row) base::at(batch.positions, row) += 39;
  for (int32_t row = batch.starts[5]; row < batch.starts[6]; ++row) base::at(batch.positions, row) += 5;
  return batch;
}

std::vector<float> own_rows(const TokenBatch& batch, const std::vector<float>& all) {
  const size_t width = all.size() / batch.ids.size();
  std::vector<float> own;
  for (const int32_t row : batch.cut->own())
    own.insert(own.end(), all.begin() + row * static_cast<int64_t>(width),
               all.begin() + (row + 1) * static_cast<int64_t>(width));
  return own;
}

// Adds the gradients of a loss whose slope in hidden state i is sin(0.9 i).
void add_gradients(Model& model, const TokenBatch& batch, Recompute recompute) {
  std::unique_ptr<ForwardRecord> record;
  const at::Tensor hidden = model.forward_train(batch, recompute, record);
  std::vector<float> slopes;
  for (size_t i = 0; i < batch.ids.size() * static_cast<size_t>(hidden.size(1)); ++i)
    slopes.push_back(std::sin(static_cast<float>(i) * 0.9F));
  if (batch.cut != nullptr) slopes = own_rows(batch, slopes);
  at::Tensor gradient = at::empty(hidden.sizes(), at::kFloat);
  std::ranges::copy(slopes, gradient.data_ptr<float>());
  model.backward(std::move(record), on_device(gradient));
}

// Tests take every small model, as it is and with adapters, and both kinds of exchange: each has one rank's bits in the
// forward, and so the other's. Four ranks share two key-value heads.
class ContextParity : public ::testing::TestWithParam<std::tuple<std::string, bool, int, ContextKind>> {
 protected:
  static int ranks() { return std::get<2>(GetParam()); }
  static ContextKind kind() { return std::get<3>(GetParam()); }
  static WeightsOptions options(ComputeType compute = ComputeType::kFloat32) {
    return {.trained = true, .compute = compute, .lora = {.rank = std::get<1>(GetParam()) ? 3 : 0, .alpha = 2}};
  }
  // Adapters of training drop some of their inputs.
  static WeightsOptions dropping() {
    WeightsOptions dropping = options();
    if (dropping.lora.on()) dropping.lora.dropout = 0.3;
    return dropping;
  }
  static TokenBatch with_noise(const TokenBatch& batch) {
    return std::get<1>(GetParam()) ? testing::noisy(batch) : batch;
  }
  // Compares what one rank's forward and those of several give each token.
  void expect_bits(const WeightsOptions& options, const TokenBatch& batch) const {
    const auto expected = to_vector(Model(tiny_weights(shape_, options), {}).forward(batch));
    on_context_ranks(ranks(), kind(), batch, [&](const TokenBatch& mine) {
      Model model(tiny_weights(shape_, options), {});
      const auto own = own_rows(mine, expected);
      EXPECT_EQ(to_vector(model.forward(mine)), own);
      std::unique_ptr<ForwardRecord> record;
      EXPECT_EQ(to_vector(model.forward_train(mine, Recompute::kNone, record)), own);
      EXPECT_EQ(to_vector(model.forward_train(mine, Recompute::kFull, record)), own);
    });
  }

  shape::ModelShape shape_ = tiny_shape(std::get<0>(GetParam()));
  TokenBatch batch_ = batch_of(37);
};

TEST_P(ContextParity, ForwardsHaveTheBitsOfOneRank) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot, ComputeType::kBFloat16Amx})
    expect_bits(options(compute), batch_);
}

// Where there are fewer tokens than ranks, some ranks have none.
TEST_P(ContextParity, RanksWithoutTokensTakePart) { expect_bits(options(), pack({{5, 9}, {7}})); }

TEST_P(ContextParity, GradientsAddUpToThoseOfOneRank) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull})
    for (const TokenBatch& batch : {with_noise(batch_), with_noise(pack({{5, 9}, {7}}))}) {
      const auto one = tiny_weights(shape_, dropping());
      Model whole(one, {});
      add_gradients(whole, batch, recompute);
      on_context_ranks(ranks(), kind(), batch, [&](const TokenBatch& mine) {
        const auto weights = tiny_weights(shape_, dropping());
        Model model(weights, {});
        add_gradients(model, mine, recompute);
        for (int i = 0; i < static_cast<int>(weights->params().size()); ++i) {
          if (!weights->trains(i)) continue;
          const auto own = weights->gradient_of(i), expected = one->gradient_of(i);
          std::vector<float> sum(own.begin(), own.end());
          mine.cut->ranks().group->all_reduce(sum).wait(comm::kDeadlineOfRanks);
          double difference = 0, norm = 0;
          for (size_t j = 0; j < sum.size(); ++j) {
            difference += std::pow(double{sum[j]} - expected[j], 2);
            norm += std::pow(double{expected[j]}, 2);
          }
          EXPECT_LE(std::sqrt(difference), 1e-5 * (std::sqrt(norm) + 1)) << base::at(weights->params(), i).name;
        }
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Models, ContextParity,
                         ::testing::Combine(::testing::ValuesIn(testing::tiny_models()), ::testing::Bool(),
                                            ::testing::Values(2, 4),
                                            ::testing::Values(ContextKind::kGather, ContextKind::kUlysses)));

class HeadExchangeParity : public ::testing::TestWithParam<std::string> {};

// Where each rank has whole key-value heads, the gradient that reaches a token has the bits of one rank. As each id is
// there once, the embedding's gradient has that of each token in a row of its own, to which other ranks add zeros.
TEST_P(HeadExchangeParity, GradientsOfTokensHaveTheBitsOfOneRank) {
  const shape::ModelShape shape = tiny_shape(GetParam());
  std::vector<std::vector<int32_t>> ids(2);
  for (int32_t i = 0; i < 33; ++i) ids[i < 20 ? 0 : 1].push_back((7 * i + 3) % 37);
  const TokenBatch batch = pack(ids);
  for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    const auto one = tiny_weights(shape, {.trained = true});
    Model whole(one, {});
    add_gradients(whole, batch, recompute);
    const int embedding = one->index_of(shape::Part::kEmbedding, 0);
    const auto given = one->gradient_of(embedding);
    const std::vector<float> expected(given.begin(), given.end());
    on_context_ranks(2, ContextKind::kUlysses, batch, [&](const TokenBatch& mine) {
      const auto weights = tiny_weights(shape, {.trained = true});
      Model model(weights, {});
      add_gradients(model, mine, recompute);
      const auto own = weights->gradient_of(embedding);
      std::vector<float> sum(own.begin(), own.end());
      mine.cut->ranks().group->all_reduce(sum).wait(comm::kDeadlineOfRanks);
      EXPECT_EQ(sum, expected);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HeadExchangeParity, ::testing::ValuesIn(testing::tiny_models()));

}  // namespace
}  // namespace collimate::model

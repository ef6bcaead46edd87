// Ranks that share the experts of a mixture against one rank: the bits of every forward, gradients, files.
#include "collimate/model/expert_ranks.h"

#include "collimate/base/read_file.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/near_gradient.h"
#include "tests/support/model/rank_passes.h"

namespace collimate::model {
namespace {

using namespace testing;  // NOLINT: test only

std::vector<std::string> mixtures() {
  std::vector<std::string> names;
  for (const std::string& name : testing::tiny_models())
    if (routed_width(tiny_shape(name)) > 0) names.push_back(name);
  return names;
}

// Every mixture over ranks that divide its experts, and over more of them that do not. The last rank has no tokens.
class ExpertParity : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static int ranks() { return std::get<1>(GetParam()); }
  const TokenBatch& batch(int rank) const { return base::at(batches_, rank + 1 == ranks() ? 3 : rank); }

  shape::ModelShape shape_ = tiny_shape(std::get<0>(GetParam()));
  std::vector<TokenBatch> batches_ = {pack(sequences({33, 1, 16}, 37)), pack(sequences({50}, 37)),
                                      pack(sequences({17, 5}, 37)), TokenBatch{.starts = {0}}};
  std::vector<std::vector<std::vector<int32_t>>> tables_ = {
      {{3, 1, 4}, {5}, {9, 2}}, {{6, 0, 7, 8}}, {{11, 10}, {1}}, {}};
};

TEST_P(ExpertParity, ForwardsHaveTheBitsOfOneRank) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot}) {
    const WeightsOptions options{.trained = true, .compute = compute};
    Model one(tiny_weights(shape_, options), {});
    std::vector<std::vector<float>> expected, expected_cached;
    std::vector<RoutedExperts> routes(3);
    for (size_t i = 0; i < 3; ++i) {
      expected.push_back(to_vector(one.forward(batches_[i])));
      KvCache cache(one.shape(), kv_type(compute), 20);
      expected_cached.push_back(to_vector(one.forward_cached(batches_[i], cache, tables_[i], &routes[i])));
    }
    on_ranks(ranks(), &ModelRanks::experts, options, [&](const WeightsOptions& mine) {
      Model model(tiny_weights(shape_, mine), {});
      const int rank = mine.ranks.experts.place.rank;
      const at::Tensor hidden = model.forward(batch(rank));
      KvCache cache(model.shape(), kv_type(compute), 20);
      if (batch(rank).ids.empty()) {
        EXPECT_EQ(hidden.size(0), 0);
        EXPECT_FALSE(model.end_step(false));  // takes part in the others' forward
        return;
      }
      EXPECT_EQ(to_vector(hidden), base::at(expected, rank));
      RoutedExperts chosen;
      const at::Tensor cached = model.forward_cached(batch(rank), cache, base::at(tables_, rank), &chosen);
      EXPECT_EQ(to_vector(cached), base::at(expected_cached, rank));
      EXPECT_EQ(chosen, base::at(routes, rank));
      EXPECT_FALSE(model.end_step(false));
    });
  }
}

TEST_P(ExpertParity, GradientsAreThoseOfOneRank) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const WeightsOptions options{.trained = true};
    const auto one = tiny_weights(shape_, options);
    Model whole(one, {});
    std::vector<std::vector<float>> expected;
    for (int rank = 0; rank + 1 < ranks(); ++rank) expected.push_back(train_once(whole, batch(rank), recompute));
    on_ranks(ranks(), &ModelRanks::experts, options, [&](const WeightsOptions& mine) {
      const auto weights = tiny_weights(shape_, mine);
      Model model(weights, {});
      const int rank = mine.ranks.experts.place.rank;
      const std::vector<float> log_probs = train_once(model, batch(rank), recompute);
      if (rank + 1 < ranks()) {
        EXPECT_EQ(log_probs, base::at(expected, rank));
      }
      for (int i = 0; i < static_cast<int>(weights->params().size()); ++i) {
        const shape::ParamSpec& spec = base::at(weights->params(), i);
        const auto all = one->gradient_of(i), own = weights->gradient_of(i);
        std::vector<float> sum(own.begin(), own.end());
        if (spec.absent()) continue;
        if (spec.expert < 0) mine.ranks.experts.group->all_reduce(sum).wait(comm::kDeadlineOfRanks);
        expect_near_gradient({all.begin(), all.end()}, sum, spec.name);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Mixtures, ExpertParity,
                         ::testing::Combine(::testing::ValuesIn(mixtures()), ::testing::Values(2, 3, 4)));

// A rank that has steps left has the others take part in them.
TEST(ExpertRanks, EndAStepTogether) {
  const shape::ModelShape shape = tiny_shape("mixtral");
  const TokenBatch tokens = pack(sequences({4}, 37));
  const std::vector<std::vector<int32_t>> tables = {{0}};
  on_ranks(3, &ModelRanks::experts, {}, [&](const WeightsOptions& mine) {
    Model model(tiny_weights(shape, mine), {});
    KvCache cache(model.shape(), kv_type(ComputeType::kFloat32), 2);
    const int mine_to_do = mine.ranks.experts.place.rank;  // steps, each with as many forwards
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; step < mine_to_do && i < mine_to_do; ++i) model.forward_cached(tokens, cache, tables);
      EXPECT_EQ(model.end_step(step + 1 < mine_to_do), step + 1 < 2) << step;
    }
  });
}

using ExpertFiles = testing::InDirectory;

TEST_F(ExpertFiles, AreThoseOfOneRank) {
  for (const char* family : {"mixtral", "qwen2_moe", "deepseek_v3"})
    expect_files_of_one_rank(family, directory_, &ModelRanks::experts, 3);
}

// Ranks share experts whose matrices tensor ranks share, of blocks that stages share.
TEST_F(ExpertFiles, OfPiecesAndStagesAreThoseOfOneRank) {
  expect_files_of_one_rank("mixtral", directory_, [](const auto& body) {
    comm::with_ranks(8, "experts of stages of tensor ranks", [&](comm::Group& all) {
      const int tensor = all.rank() % 2, stage = all.rank() / 2 % 2, rank = all.rank() / 4;
      const auto join = [](const std::string& name, int place) {
        return comm::back_end("threads").join({name, "", place, 2, comm::kDeadlineOfRanks});
      };
      const auto pieces = join(fmt::format("pieces {} {}", stage, rank), tensor);
      const auto line = join(fmt::format("stages {} {}", tensor, rank), stage);
      const auto shared = join(fmt::format("experts {} {}", tensor, stage), rank);
      body({.trained = true,
            .ranks = {.tensor = {{pieces.get(), comm::kDeadlineOfRanks}, {tensor, 2}},
                      .stages = {{line.get(), comm::kDeadlineOfRanks}, {stage, 2}},
                      .experts = {{shared.get(), comm::kDeadlineOfRanks}, {rank, 2}}}});
    });
  });
}

TEST(ExpertRanks, ModelsThatTheyCannotShareAreNamed) {
  const auto refusal = [](const char* family, int ranks) {
    const WeightsOptions options{.tag = "policy", .ranks = {.experts = {{}, {0, ranks}}}};
    return base::message_of([&] { Weights(tiny_shape(family), options, {}); });
  };
  EXPECT_EQ(refusal("llama", 2),
            "[weights of policy] expected ep 1, as the model has no experts, got ep 2; try dp, tp or pp");
  EXPECT_EQ(refusal("mixtral", 8),
            "[weights of policy] expected an ep of at most the 4 experts, got ep 8; try a smaller ep, or dp");
}

}  // namespace
}  // namespace collimate::model

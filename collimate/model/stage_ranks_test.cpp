// Pipeline stages against one rank: the bits of every forward, gradients, files.
#include "collimate/model/stage_ranks.h"

#include <filesystem>

#include "collimate/base/read_file.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/near_gradient.h"
#include "tests/support/model/rank_passes.h"

namespace collimate::model {
namespace {

using namespace testing;  // NOLINT: test only

// Every small model with a third block, as it is and with adapters, over 2 and 3 stages.
class StageParity : public ::testing::TestWithParam<std::tuple<std::string, bool, int>> {
 protected:
  static int stages() { return std::get<2>(GetParam()); }
  WeightsOptions options(ComputeType compute = ComputeType::kFloat32) const {
    return {.trained = true, .compute = compute, .lora = {.rank = std::get<1>(GetParam()) ? 3 : 0, .alpha = 2}};
  }
  static shape::ModelShape shape_of(const std::string& name) {
    shape::ModelShape shape = tiny_shape(name);
    shape.blocks.push_back(shape.blocks[1]);
    return shape;
  }
  // The logits of hidden states, on every stage.
  static std::vector<float> logits_of(Model& model, const at::Tensor& hidden) {
    return to_vector(model.from_last_stage({hidden.size(0), 37}, [&] { return model.logits(hidden); }));
  }

  shape::ModelShape shape_ = shape_of(std::get<0>(GetParam()));
  TokenBatch batch_ = pack(sequences({33, 1, 16, 50, 17}, 37));
};

TEST_P(StageParity, ForwardsHaveTheBitsOfOneRank) {
  for (const ComputeType compute : {ComputeType::kFloat32, ComputeType::kBFloat16Dot, ComputeType::kBFloat16Amx}) {
    Model one(tiny_weights(shape_, options(compute)), {});
    const auto expected = logits_of(one, one.forward(batch_));
    RoutedExperts routes;
    const bool mixture = routed_width(shape_) > 0;
    const std::vector<std::vector<int32_t>> tables = {{3, 1, 4}, {5}, {9, 2}, {6, 0, 7, 8}, {11, 10}};
    if (mixture) {
      KvCache cache(one.shape(), kv_type(compute), 20);
      one.forward_cached(batch_, cache, tables, &routes);
    }
    on_ranks(stages(), &ModelRanks::stages, options(compute), [&](const WeightsOptions& mine) {
      Model model(tiny_weights(shape_, mine), {});
      EXPECT_EQ(logits_of(model, model.forward(batch_)), expected);
      KvCache cache(model.shape(), kv_type(compute), 20);
      RoutedExperts chosen;
      EXPECT_EQ(logits_of(model, model.forward_cached(batch_, cache, tables, mixture ? &chosen : nullptr)), expected);
      EXPECT_EQ(chosen, routes);
    });
  }
}

// Both parts of the gradient of an embedding that is the head come to it in another order.
TEST_P(StageParity, GradientsHaveTheBitsOfOneRank) {
  for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
    const auto one = tiny_weights(shape_, options());
    Model whole(one, {});
    const auto expected = train_once(whole, batch_, recompute);
    on_ranks(stages(), &ModelRanks::stages, options(), [&](const WeightsOptions& mine) {
      const auto weights = tiny_weights(shape_, mine);
      Model model(weights, {});
      const std::vector<float> log_probs = train_once(model, batch_, recompute);
      if (mine.ranks.stages.place.is_last()) {
        EXPECT_EQ(log_probs, expected);
      }
      const bool ends = mine.ranks.stages.place.is_first() || mine.ranks.stages.place.is_last();
      const bool tied = shape_.tied_embeddings && weights->options().lora.rank == 0;
      for (int i = 0; i < static_cast<int>(weights->params().size()); ++i) {
        if (!weights->trains(i)) continue;
        const auto all = one->gradient_of(i), own = weights->gradient_of(i);
        std::vector<float> mine_now(own.begin(), own.end());
        if (i == 0 && tied && ends) {
          mine.ranks.stages.sum_ends(mine_now);
          expect_near_gradient({all.begin(), all.end()}, mine_now, weights->params()[0].name);
        } else {
          EXPECT_EQ(mine_now, std::vector<float>(all.begin(), all.end())) << base::at(weights->params(), i).name;
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, StageParity,
                         ::testing::Combine(::testing::ValuesIn(testing::tiny_models()), ::testing::Bool(),
                                            ::testing::Values(2, 3)));

shape::ModelShape of_blocks(const std::string& family, size_t blocks) {
  shape::ModelShape shape = tiny_shape(family);
  shape.tied_embeddings = false;
  shape.blocks.resize(blocks, shape.blocks[1]);
  return shape;
}

// The layers of stages, and how many of these each rank has.
struct Cut {
  std::vector<int64_t> layers;
  int runs = 1;
  int ranks() const { return static_cast<int>(layers.size()) / runs; }
};

// Stages may have any numbers of layers, and a rank several stages.
TEST(StageRanks, OfAnyLayersHaveTheBitsOfOneRank) {
  for (const char* family : {"llama", "mixtral"}) {
    const shape::ModelShape shape = of_blocks(family, 6);
    const TokenBatch batch = pack(sequences({33, 1, 16}, 37));
    const std::vector<std::vector<int32_t>> tables = {{3, 1, 4}, {5}, {9, 2}};
    const auto one = tiny_weights(shape, {.trained = true});
    Model whole(one, {});
    const auto expected = train_once(whole, batch, Recompute::kNone);
    const auto logits = to_vector(whole.logits(whole.forward(batch)));
    for (const Cut& cut : {Cut{{1, 5}}, {{5, 1}}, {{1, 3, 2}}, {{2, 1, 1, 2}, 2}, {{1, 1, 1, 1, 1, 1}, 3}}) {
      on_ranks(cut.ranks(), &ModelRanks::stages, {.trained = true}, [&](WeightsOptions mine) {
        mine.ranks.stages.place.layers = cut.layers;
        mine.ranks.stages.place.runs = cut.runs;
        const shape::StageRank& place = mine.ranks.stages.place;
        const auto weights = tiny_weights(shape, mine);
        ASSERT_EQ(std::ssize(weights->shape().own_blocks), cut.runs);
        for (int run = 0; run < cut.runs; ++run) {
          const shape::BlockRange own = base::at(weights->shape().own_blocks, run);
          EXPECT_EQ(own.end - own.first, base::at(cut.layers, run * place.ranks + place.rank));
        }
        Model model(weights, {});
        const auto log_probs = train_once(model, batch, Recompute::kNone);
        if (place.is_last()) {
          EXPECT_EQ(log_probs, expected);
        }
        for (int i = 0; i < static_cast<int>(weights->params().size()); ++i) {
          if (!weights->trains(i)) continue;
          const auto all = one->gradient_of(i), part = weights->gradient_of(i);
          EXPECT_EQ(std::vector<float>(part.begin(), part.end()), std::vector<float>(all.begin(), all.end()))
              << base::at(weights->params(), i).name;
        }
        KvCache cache(model.shape(), kv_type(ComputeType::kFloat32), 20);
        const at::Tensor hidden = model.forward_cached(batch, cache, tables);
        EXPECT_EQ(to_vector(model.from_last_stage({hidden.size(0), 37}, [&] { return model.logits(hidden); })), logits);
      });
    }
  }
}

using StageFiles = testing::InDirectory;

TEST_F(StageFiles, AreThoseOfOneRank) {
  for (const char* family : {"llama", "gpt2", "gptj", "mixtral", "deepseek_v3", "opt_350m"})
    expect_files_of_one_rank(family, directory_, &ModelRanks::stages, 2);
}

// Ranks are stages of tensor ranks.
TEST_F(StageFiles, OfPiecesAreThoseOfOneRank) {
  expect_files_of_one_rank("llama", directory_, [](const auto& body) {
    comm::with_ranks(4, "stages of tensor ranks", [&](comm::Group& all) {
      const int tensor = all.rank() % 2, stage = all.rank() / 2;
      const comm::BackEnd& threads = comm::back_end("threads");
      const auto pieces = threads.join({fmt::format("pieces {}", stage), "", tensor, 2, comm::kDeadlineOfRanks});
      const auto line = threads.join({fmt::format("stages {}", tensor), "", stage, 2, comm::kDeadlineOfRanks});
      body({.trained = true,
            .ranks = {.tensor = {{pieces.get(), comm::kDeadlineOfRanks}, {tensor, 2}},
                      .stages = {{line.get(), comm::kDeadlineOfRanks}, {stage, 2}}}});
    });
  });
}

// Files do not know the stages of those that wrote them.
TEST_F(StageFiles, OfAnyLayersAreThoseOfOneRank) {
  const std::string whole = directory_ + "/whole", parts = directory_ + "/ranks";
  const auto one = tiny_weights(of_blocks("llama", 5));
  save_huggingface(*one, whole);
  on_ranks(2, &ModelRanks::stages, {.trained = true}, [&](WeightsOptions mine) {
    mine.ranks.stages.place.layers = {4, 1};
    const auto weights = load_huggingface(whole, "", mine, {});
    EXPECT_EQ(weights->checksum(), one->checksum());
    save_huggingface(*weights, parts);
  });
  EXPECT_EQ(base::read_file(parts + "/model.safetensors"), base::read_file(whole + "/model.safetensors"));
}

TEST_F(StageFiles, OfAdaptersAreThoseOfOneRank) { expect_adapter_files_of_one_rank(directory_, &ModelRanks::stages); }

// Adapters of the later blocks alone: the stages ahead of them have nothing to train, and wait for no gradient.
TEST(StageRanks, WithoutAnythingTrainedAheadNoGradientIsSent) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.blocks.push_back(shape.blocks[1]);
  const WeightsOptions options{.trained = true, .lora = {.rank = 2, .targets = {"layers.2.mlp.up_proj"}}};
  on_ranks(3, &ModelRanks::stages, options, [&](const WeightsOptions& mine) {
    Model model(tiny_weights(shape, mine), {});
    train_once(model, pack(sequences({9, 4}, 37)), Recompute::kNone, /*moves=*/false);
  });
}

TEST(StageRanks, MoreStagesThanBlocksAreNamed) {
  const WeightsOptions options{.trained = true, .tag = "policy", .ranks = {.stages = {{}, {0, 3}}}};
  EXPECT_EQ(base::message_of([&] { Weights(tiny_shape("llama"), options, {}); }),
            "[weights of policy] expected a pp of at most the model's 2 blocks, got pp 3; try a smaller pp, tp or dp");
}

}  // namespace
}  // namespace collimate::model

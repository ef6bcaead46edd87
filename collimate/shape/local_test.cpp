#include "collimate/shape/local.h"

#include <gtest/gtest.h>

#include <numeric>

#include "collimate/base/at.h"
#include "tests/support/base/error_of.h"

namespace collimate::shape {
namespace {

ModelShape small_shape(const std::string& family) {
  Block block;
  block.attention = {.heads = 4, .kv_heads = family == "gpt2" ? 4 : 2, .head_dim = 2, .bias = family == "gpt2"};
  block.mlp = {.intermediate = 12, .gated = family != "gpt2", .bias = family == "gpt2"};
  ModelShape shape;
  shape.family = family;
  shape.vocabulary = 5;
  shape.hidden = 6;
  shape.max_positions = 7;
  shape.blocks = {block, block};
  return shape;
}

TEST(Local, ParametersAreThoseOfTheRanksOwnShape) {
  for (const char* family : {"llama", "gpt2"})
    for (const TensorRank of : {TensorRank{0, 1}, {0, 2}, {1, 2}, {2, 4}, {3, 4}}) {
      const ModelShape whole = small_shape(family);
      const auto mine = local(param_specs(whole), whole, {of}),
                 expected = param_specs(local_shape(whole, {of}, "here"));
      ASSERT_EQ(mine.size(), expected.size());
      for (size_t i = 0; i < mine.size(); ++i) {
        EXPECT_EQ(mine[i].name, expected[i].name);
        EXPECT_EQ(mine[i].sizes, expected[i].sizes) << mine[i].name;
        EXPECT_EQ(mine[i].offset, expected[i].offset) << mine[i].name;
        EXPECT_EQ(mine[i].cut >= 0, of.ranks > 1 && is_cut(mine[i], of.ranks)) << mine[i].name;
      }
    }
}

std::vector<float> numbers(const ParamSpec& spec) {
  std::vector<float> all(static_cast<size_t>(spec.count()));
  std::iota(all.begin(), all.end(), 1.0F);
  return all;
}

// GPT-2 has one matrix for queries, keys and values: a rank has the rows of its heads in each.
TEST(Local, PiecesAreOfEachOfTheMatricesSideBySide) {
  const auto whole = param_specs(small_shape("gpt2"));
  const auto is_fused = [](const ParamSpec& spec) { return spec.name == "transformer.h.1.attn.c_attn.bias"; };
  const ParamSpec& bias = *std::ranges::find_if(whole, is_fused);
  const ParamSpec mine = local(bias, {1, 2});
  EXPECT_EQ(mine.pieces, (std::vector<Piece>{{4, 4}, {12, 4}, {20, 4}}));
  std::vector<float> taken(12);
  take_pieces(mine, numbers(bias), taken);
  EXPECT_EQ(taken, (std::vector<float>{5, 6, 7, 8, 13, 14, 15, 16, 21, 22, 23, 24}));
}

TEST(Local, PiecesOfAllRanksAreTheWhole) {
  for (const ParamSpec& whole : param_specs(small_shape("llama"))) {
    if (!is_cut(whole, 4)) continue;
    std::vector<float> again(static_cast<size_t>(whole.count()));
    for (const int rank : {0, 1, 2, 3}) {
      const ParamSpec mine = local(whole, {rank, 4});
      std::vector<float> taken(static_cast<size_t>(mine.count()));
      take_pieces(mine, numbers(whole), taken);
      put_pieces(mine, taken, again);
    }
    EXPECT_EQ(again, numbers(whole)) << whole.name;
  }
}

// Two of four ranks have each of two key-value heads.
TEST(Local, RanksHaveTheSameHeadWhereThereAreFewer) {
  const auto whole = param_specs(small_shape("llama"));
  const auto keys = [](const ParamSpec& spec) { return spec.name == "model.layers.0.self_attn.k_proj.weight"; };
  const ParamSpec mine = local(*std::ranges::find_if(whole, keys), {3, 4});
  EXPECT_EQ(mine.pieces, (std::vector<Piece>{{2, 2, 2}}));
}

TEST(Local, NumbersThatDoNotDivideAreNamed) {
  EXPECT_EQ(base::message_of([] {
              local_shape(small_shape("llama"), {{0, 8}}, "policy");
            }),
            "[policy] expected a tp that divides the model's 4 attention heads, got tp 8; try another tp, or dp");
}

// Each parameter is on the stage whose pass reads it; an embedding that is the head on both ends.
TEST(Local, StagesHaveWhatTheyRead) {
  for (const bool tied : {false, true}) {
    ModelShape whole = small_shape("llama");
    whole.tied_embeddings = tied;
    whole.blocks.resize(5, whole.blocks.front());
    const std::vector<ParamSpec> specs = param_specs(whole);
    std::vector<int> copies(specs.size());
    int64_t next = 0;
    for (int stage = 0; stage < 3; ++stage) {
      const ModelRank of{{}, {stage, 3}};
      const ModelShape mine = local_shape(whole, of, "here");
      EXPECT_EQ(mine.own_blocks.front().first, next);
      next = mine.own_blocks.front().end;
      EXPECT_LT(mine.own_blocks.front().first, next);
      const std::vector<ParamSpec> own = local(specs, whole, of);
      for (size_t i = 0; i < own.size(); ++i) {
        EXPECT_EQ(own[i].name, specs[i].name);
        if (own[i].absent()) {
          EXPECT_EQ(own[i].count(), 0) << own[i].name;
          continue;
        }
        ++copies[i];
        EXPECT_EQ(own[i].sizes, specs[i].sizes) << own[i].name;
        const int segment = own[i].segment;
        const bool second = is_second_copy(specs[i], whole, of.stage);
        EXPECT_EQ(second, tied && stage == 2 && segment == 0) << own[i].name;
        if (!second) {
          const bool ahead = segment == 0 && stage == 0, behind = segment == 6 && stage == 2;
          EXPECT_TRUE(ahead || behind || mine.has_block(segment - 1)) << own[i].name;
          EXPECT_EQ(stage_of(specs[i], whole, of.stage), stage) << own[i].name;
        }
      }
    }
    for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(copies[i], i == 0 && tied ? 2 : 1) << specs[i].name;
  }
}

// Each expert is on one rank, whole and in a segment of its block's experts; all else is on every rank as it was.
TEST(Local, ExpertRanksHaveWholeExperts) {
  ModelShape whole = small_shape("mixtral");
  for (Block& block : whole.blocks) block.mlp.experts = {.count = 5, .per_token = 2, .intermediate = 4};
  const std::vector<ParamSpec> specs = param_specs(whole);
  std::vector<int> copies(specs.size());
  for (int rank = 0; rank < 3; ++rank) {
    const ModelRank of{{}, {}, {rank, 3}};
    const Experts experts = local_shape(whole, of, "here").blocks[1].mlp.experts;
    EXPECT_EQ(experts.first, (std::vector<int64_t>{0, 1, 3}.at(static_cast<size_t>(rank))));
    EXPECT_EQ(experts.own, rank == 0 ? 1 : 2);
    const std::vector<ParamSpec> own = local(specs, whole, of);
    const std::vector<int64_t> floats = segment_floats(own);
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].name, specs[i].name);
      const int expert = own[i].expert;
      EXPECT_EQ(expert >= 0, own[i].name.find(".experts.") != std::string::npos) << own[i].name;
      EXPECT_EQ(own[i].segment, expert < 0 ? specs[i].segment : 4 + specs[i].segment - 1) << own[i].name;
      EXPECT_EQ(own[i].runs_in, specs[i].segment);
      const bool here = expert < 0 || (expert >= experts.first && expert < experts.first + experts.own);
      EXPECT_EQ(own[i].absent(), !here) << own[i].name;
      EXPECT_EQ(own[i].count(), here ? specs[i].count() : 0) << own[i].name;
      EXPECT_LE(own[i].offset + own[i].count(), base::at(floats, own[i].segment));
      copies[i] += here ? 1 : 0;
    }
  }
  for (size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(copies[i], specs[i].expert < 0 ? 3 : 1) << specs[i].name;
}

// A head as large as three blocks leaves the last stage fewer of them; a score head takes the place of none.
TEST(Local, StagesAreCutByWhatTheyCompute) {
  ModelShape whole = small_shape("llama");
  whole.blocks.assign(8, whole.blocks.front());
  const auto firsts = [&](int stages) {
    std::vector<int64_t> all;
    for (int stage = 0; stage < stages; ++stage)
      all.push_back(local_shape(whole, {{}, {stage, stages}}, "here").own_blocks.front().first);
    return all;
  };
  const Block& block = whole.blocks.front();
  const int64_t of_block = whole.hidden * (block.attention.query_width() * 2 + block.attention.kv_width() * 2 +
                                           block.mlp.up_width() + block.mlp.intermediate);
  whole.vocabulary = 3 * of_block / whole.hidden;
  EXPECT_EQ(firsts(2), (std::vector<int64_t>{0, 5}));
  EXPECT_EQ(firsts(4), (std::vector<int64_t>{0, 2, 4, 7}));
  whole.head = Head::kScore;
  EXPECT_EQ(firsts(2), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(firsts(8), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// Stages may have any numbers of blocks, if they are said.
TEST(Local, StagesHaveTheLayersThatAreSaid) {
  ModelShape whole = small_shape("llama");
  whole.blocks.assign(7, whole.blocks.front());
  const std::vector<ParamSpec> specs = param_specs(whole);
  const std::vector<int64_t> ends = {1, 5, 7};
  for (int stage = 0; stage < 3; ++stage) {
    const ModelRank of{{}, {stage, 3, {1, 4, 2}}};
    const BlockRange blocks = local_shape(whole, of, "here").own_blocks.front();
    EXPECT_EQ(blocks.first, stage == 0 ? 0 : base::at(ends, stage - 1));
    EXPECT_EQ(blocks.end, base::at(ends, stage));
    const std::vector<ParamSpec> own = local(specs, whole, of);
    for (size_t i = 0; i < own.size(); ++i) {
      const int64_t block = specs[i].runs_in - 1;
      const bool ahead = block < 0, behind = block == 7;
      const bool here = ahead ? stage == 0 : behind ? stage == 2 : blocks.has(block);
      EXPECT_EQ(own[i].absent(), !here) << own[i].name;
      EXPECT_EQ(stage_of(specs[i], whole, of.stage) == stage, here) << own[i].name;
    }
  }
}

// A rank with several runs has stages that are not neighbours.
TEST(Local, RanksMayHaveSeveralStages) {
  ModelShape whole = small_shape("llama");
  whole.blocks.assign(8, whole.blocks.front());
  const std::vector<ParamSpec> specs = param_specs(whole);
  for (const std::vector<int64_t>& layers : {std::vector<int64_t>{}, {1, 2, 2, 3}}) {
    std::vector<int> owners(8, -1);
    for (int rank = 0; rank < 2; ++rank) {
      const ModelRank of{{}, {rank, 2, layers, 2}};
      const ModelShape mine = local_shape(whole, of, "here");
      ASSERT_EQ(mine.own_blocks.size(), 2U);
      for (int64_t block = 0; block < 8; ++block)
        if (mine.has_block(block)) base::at(owners, block) = rank;
      const std::vector<ParamSpec> own = local(specs, whole, of);
      for (size_t i = 0; i < own.size(); ++i) {
        const int64_t block = specs[i].runs_in - 1;
        const bool here = block < 0 ? rank == 0 : block == 8 ? rank == 1 : mine.has_block(block);
        EXPECT_EQ(own[i].absent(), !here) << own[i].name;
        EXPECT_EQ(stage_of(specs[i], whole, of.stage) == rank, here) << own[i].name;
      }
    }
    const std::vector<int> equal = {0, 0, 1, 1, 0, 0, 1, 1}, said = {0, 1, 1, 0, 0, 1, 1, 1};
    EXPECT_EQ(owners, layers.empty() ? equal : said);
  }
  EXPECT_EQ(base::message_of([&] {
              local_shape(small_shape("llama"), {{}, {0, 2, {}, 2}}, "policy");
            }),
            "[policy] expected a pp times virtual_stages of at most the model's 2 blocks, got pp 2 times 2; try fewer "
            "virtual_stages, or a smaller pp");
}

TEST(Local, LayersOfStagesAreAllOfTheModel) {
  const auto error = [](std::vector<int64_t> layers) {
    return base::message_of([&] { local_shape(small_shape("llama"), {{}, {0, 2, std::move(layers)}}, "policy"); });
  };
  EXPECT_EQ(error({1, 1}), "");
  EXPECT_EQ(
      error({1, 2}),
      "[policy] expected stages of 1 block or more that are the model's 2 together, got stages: [1, 2], which are "
      "3; try other numbers of blocks, or leaving stages out");
  EXPECT_NE(error({2, 0}), "");
}

TEST(Local, MoreStagesThanBlocksAreNamed) {
  EXPECT_EQ(base::message_of([] {
              local_shape(small_shape("llama"), {{}, {0, 3}}, "policy");
            }),
            "[policy] expected a pp of at most the model's 2 blocks, got pp 3; try a smaller pp, tp or dp");
}

}  // namespace
}  // namespace collimate::shape

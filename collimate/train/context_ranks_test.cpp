// Ranks that share the tokens of each row, against one rank: scores, checks, updates.
#include <ATen/TensorOperators.h>

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/altered_experts.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/model/whole_values.h"
#include "tests/support/train/shared_ranks.h"

namespace collimate::train {
namespace {

using namespace testing;  // NOLINT: test only

constexpr shape::ContextKind kUlysses = shape::ContextKind::kUlysses;

TEST(ContextRanks, ScoresHaveTheBitsOfOneRank) {
  const Batch rows = shared_samples();
  for (const shape::Head head : {shape::Head::kLanguageModel, shape::Head::kScore}) {
    shape::ModelShape shape = tiny_shape("qwen2");
    shape.head = head;
    const auto scored = [&](const model::ContextRanks& context) {
      model::Model model(tiny_weights(shape), {});
      const ScoringOptions options{.temperature = 0.7F, .micro_batch_tokens = 60, .context = context};
      if (head == shape::Head::kLanguageModel)
        return with_log_probs(model, rows, batch::kLogProbs, options).all(batch::kLogProbs);
      std::vector<float> values = with_values(model, rows, options).all(batch::kValues);
      const std::vector<float> scores = with_scores(model, rows, options).all(batch::kScore);
      values.insert(values.end(), scores.begin(), scores.end());
      return values;
    };
    const std::vector<float> expected = scored({});
    for (const SharedLayout& layout :
         {SharedLayout{.cp = 2}, {.cp = 3}, {.cp = 4}, {.cp = 2, .kind = kUlysses}, {.cp = 4, .kind = kUlysses}})
      on_lines(layout, fmt::format("scores {} {}", static_cast<int>(head), layout.name()),
               [&](const AxisLines& lines) { EXPECT_EQ(scored(lines.training.context), expected) << layout.name(); });
  }
}

class ContextRanksTrain : public ::testing::TestWithParam<std::pair<std::string, shape::Head>> {};

TEST_P(ContextRanksTrain, AsOneRank) {
  shape::ModelShape shape = tiny_shape(GetParam().first);
  shape.head = GetParam().second;
  const SharedRun one = trained_run(shape, {}, nullptr);
  EXPECT_GT(distance(one.start, one.values), 0.1);
  for (const SharedLayout& layout : {SharedLayout{1, 2},
                                     {1, 4, 1, 1},
                                     {1, 3, 1, 2},
                                     {1, 2, 2, 1},
                                     {1, 2, 2, 2},
                                     {2, 2, 1, 1},
                                     {1, 2, 1, 1, 2},
                                     {2, 2, 2, 2, 2},
                                     {.cp = 2, .kind = kUlysses},
                                     {.cp = 4, .dp = 1, .zero = 1, .kind = kUlysses},
                                     {.tp = 2, .cp = 2, .kind = kUlysses},
                                     {.cp = 2, .dp = 2, .zero = 3, .pp = 2, .kind = kUlysses}}) {
    const std::string name = fmt::format("{} {} {}", shape.family, static_cast<int>(shape.head), layout.name());
    std::vector<SharedRun> all(static_cast<size_t>(layout.ranks()));
    comm::with_ranks(layout.ranks(), name, [&](comm::Group& group) {
      const AxisLines lines(layout, group.rank(), name);
      base::at(all, group.rank()) = trained_run(shape, layout, &lines);
    });
    for (const SharedRun& got : all) expect_same_run(got, one, layout, name);
    for (int rank = layout.tp; rank < layout.ranks() / layout.pp; rank += layout.tp)
      EXPECT_EQ(base::at(all, rank).values, all.front().values) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ContextRanksTrain,
                         ::testing::Values(std::pair("llama", shape::Head::kLanguageModel),
                                           std::pair("qwen2", shape::Head::kScore),
                                           std::pair("gemma2", shape::Head::kLanguageModel),
                                           std::pair("mixtral", shape::Head::kLanguageModel),
                                           std::pair("deepseek_v3", shape::Head::kLanguageModel)));

// Log-probs, and the choices of a mixture's routers, as they were when the rows were drawn.
TEST(ContextRanks, ChecksSeeAllTokensOfTheRows) {
  const auto weights = tiny_weights(tiny_shape("mixtral"));
  model::Model one(weights, {});
  Batch rows = shared_samples();
  const int64_t width = model::routed_width(one.shape());
  std::vector<std::vector<int64_t>> versions;
  std::vector<model::RoutedExperts> experts;
  for (int64_t r = 0; r < kSharedRows; ++r) {
    const auto ids = rows.row(batch::kIds, r);
    versions.emplace_back(ids.size(), static_cast<int64_t>(weights->version()));
    model::KvCache cache(one.shape(), tensor::KvType::kFloat32, 4);
    const std::vector<int32_t> table = {0, 1, 2, 3};
    one.forward_cached(model::testing::pack({{ids.begin(), ids.end()}}), cache, {&table, 1}, &experts.emplace_back());
  }
  model::testing::alter_experts(experts.back(), one.shape(), 5);
  rows.set_ragged(batch::kWeightsVersion, versions);
  rows.set_ragged(batch::routed_experts(width), experts);
  rows = with_log_probs(one, rows, batch::kLogProbs, {});
  const auto check_with = [&](const model::ContextRanks& context) {
    model::Model model(tiny_weights(tiny_shape("mixtral")), {});
    return check(model, rows, {.micro_batch_tokens = 60, .routes = RecordedRoutes::kCompared, .context = context});
  };
  const Mismatch expected = check_with({});
  EXPECT_GT(expected.routes.compared, 0);
  on_lines({.cp = 3}, "checks", [&](const AxisLines& lines) {
    const Mismatch found = check_with(lines.training.context);
    EXPECT_EQ(found.log_prob_abs_max, 0);
    EXPECT_EQ(found.tokens_compared, expected.tokens_compared);
    EXPECT_EQ(found.routes.compared, expected.routes.compared);
    EXPECT_EQ(found.routes.differing, expected.routes.differing);
  });
}

}  // namespace
}  // namespace collimate::train

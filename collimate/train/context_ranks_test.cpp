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

namespace collimate::train {
namespace {

using model::testing::distance;
using model::testing::whole_values;

using model::testing::tiny_shape;
using model::testing::tiny_weights;
using model::testing::to_vector;

constexpr int kUpdatesShared = 10;
constexpr int64_t kSharedRows = 8;

struct SharedLayout {
  int tp = 1, cp = 1, dp = 1, zero = 0, pp = 1;
  int ranks() const { return tp * cp * dp * pp; }
  std::string name() const { return fmt::format("tp {} cp {} dp {} zero {} pp {}", tp, cp, dp, zero, pp); }
};

// A rank's groups along each axis, of which tp is the fastest, and of the ranks with the same pieces of the weights.
class AxisLines {
 public:
  AxisLines(const SharedLayout& layout, int rank, const std::string& name) : name_(name) {
    const int tensor = rank % layout.tp, context = rank / layout.tp % layout.cp,
              data = rank / layout.tp / layout.cp % layout.dp, stage = rank / layout.tp / layout.cp / layout.dp;
    const int pieces = stage * layout.tp + tensor;  // which part of the model
    tensor_ = join("tp", (stage * layout.dp + data) * layout.cp + context, tensor, layout.tp);
    context_ = join("cp", pieces * layout.dp + data, context, layout.cp);
    rows_ = join("dp", pieces * layout.cp + context, data, layout.dp);
    stages_ = join("pp", (data * layout.cp + context) * layout.tp + tensor, stage, layout.pp);
    if (layout.dp > 1) copies_ = join("copies", pieces, data * layout.cp + context, layout.dp * layout.cp);
    model.tensor = {{tensor, layout.tp}, tensor_.get(), comm::kDeadlineOfRanks};
    model.stages = {{stage, layout.pp}, stages_.get(), comm::kDeadlineOfRanks};
    training = {rows_.get(), {context, layout.cp, context_.get(), comm::kDeadlineOfRanks}, copies_.get()};
    data_rank = data;
  }

  model::ModelRanks model;
  TrainingRanks training;
  int data_rank = 0;

 private:
  std::unique_ptr<comm::Group> join(const std::string& axis, int line, int place, int size) const {
    if (size == 1) return nullptr;
    return comm::back_end("threads").join(
        {fmt::format("{} {} {}", name_, axis, line), "", place, size, comm::kDeadlineOfRanks});
  }
  std::string name_;
  std::unique_ptr<comm::Group> tensor_, context_, rows_, stages_, copies_;
};

void on_lines(const SharedLayout& layout, const std::string& name, const std::function<void(const AxisLines&)>& body) {
  comm::with_ranks(layout.ranks(), name, [&](comm::Group& all) { body(AxisLines(layout, all.rank(), name)); });
}

// Samples of four prompts, two of each; pairs are samples of one prompt, the chosen one first.
Batch shared_samples() {
  std::vector<int64_t> uids, prompts;
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> trainable;
  for (int64_t r = 0; r < kSharedRows; ++r) {
    const int64_t prompt = 3 + r / 2 * 9, tokens = prompt + 2 + 5 * r % 11;
    uids.push_back(r);
    prompts.push_back(r / 2);
    ids.emplace_back();
    for (int64_t t = 0; t < tokens; ++t)
      ids.back().push_back(static_cast<int32_t>((t < prompt ? 7 * t * t + r / 2 : 5 * t + 11 * r) % 37));
    trainable.emplace_back(ids.back().size(), 1);
    std::fill_n(trainable.back().begin(), prompt, 0);
  }
  Batch rows;
  rows.set(batch::kUid, uids);
  rows.set(batch::kPromptUid, prompts);
  rows.set_ragged(batch::kIds, ids);
  rows.set_ragged(batch::kTrainable, trainable);
  return rows;
}

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
    for (const int cp : {2, 3, 4})
      on_lines({.cp = cp}, fmt::format("scores {} {}", static_cast<int>(head), cp),
               [&](const AxisLines& lines) { EXPECT_EQ(scored(lines.training.context), expected) << cp; });
  }
}

// One rank has this after some updates.
struct SharedRun {
  std::vector<float> start, values;  // of whole parameters, on the first tensor rank of the first stage
  std::vector<UpdateReport> reports;
};

// Log-probs and entropies of a language model, values and scores of another.
Objective objective_for(shape::Head head) {
  const bool language = head == shape::Head::kLanguageModel;
  const auto loss = [=](const Batch&, const batch::Quantities& now, const batch::GlobalCounts& counts,
                        const batch::Surveys&) {
    if (language) return -(now.log_probs.sum() + 0.1 * now.entropy.sum()) / counts.tokens;
    return now.values.square().sum() / counts.tokens + now.row_scores.square().sum() / counts.rows;
  };
  return {{.log_probs = language, .entropy = language, .values = !language, .row_scores = !language}, loss};
}

SharedRun trained_run(const shape::ModelShape& shape, const SharedLayout& layout, const AxisLines* lines) {
  const model::ModelRanks of = lines == nullptr ? model::ModelRanks() : lines->model;
  const auto weights = tiny_weights(shape, {.trained = true, .tensor = of.tensor, .stages = of.stages});
  model::Model model(weights, {});
  const TrainingRanks ranks = lines == nullptr ? TrainingRanks() : lines->training;
  LearnerOptions options{
      .schedule = {.peak = 1e-3}, .max_grad_norm = 0.5, .micro_batch_tokens = 60, .zero = layout.zero};
  if (shape.family == "mixtral") options.routers = {.balance = 0.2, .z = 0.05};
  Learner learner(model, options, {}, ranks);
  const int64_t count = kSharedRows / layout.dp, first = lines == nullptr ? 0 : lines->data_rank * count;
  const Batch rows = shared_samples().slice(first, first + count);
  SharedRun after{.start = whole_values(*weights)};
  for (int i = 0; i < kUpdatesShared; ++i) after.reports.push_back(learner.update(rows, objective_for(shape.head)));
  after.values = whole_values(*weights);
  return after;
}

void expect_same_run(const SharedRun& got, const SharedRun& one, const SharedLayout& layout, const std::string& what) {
  const UpdateReport &first = got.reports.front(), &expected = one.reports.front();
  EXPECT_NEAR(first.loss, expected.loss, 1e-6 * std::abs(expected.loss)) << what;
  EXPECT_NEAR(first.grad_norm, expected.grad_norm, 1e-5 * expected.grad_norm) << what;
  EXPECT_EQ(first.routers.tokens, expected.routers.tokens) << what;
  EXPECT_NEAR(first.routers.busiest_share, expected.routers.busiest_share, 1e-6) << what;
  EXPECT_EQ(first.tokens * layout.dp, layout.dp == 1 ? expected.tokens : first.tokens * layout.dp);
  if (layout.tp == 1 && layout.dp == 1 && expected.routers.tokens == 0 && layout.pp == 1) {
    EXPECT_EQ(first.loss, expected.loss) << what;
  }
  if (got.values.empty()) return;
  EXPECT_LE(distance(got.values, one.values), 1e-3 * distance(one.start, one.values)) << what;
}

class ContextRanksTrain : public testing::TestWithParam<std::pair<std::string, shape::Head>> {};

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
                                     {2, 2, 2, 2, 2}}) {
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
                         testing::Values(std::pair("llama", shape::Head::kLanguageModel),
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

#pragma once

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/token_rows.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/model/whole_values.h"

// Ranks of any layout that train the same small rows as one rank.
namespace collimate::train::testing {

using model::testing::distance;
using model::testing::whole_values;

using model::testing::tiny_shape;
using model::testing::tiny_weights;
using model::testing::to_vector;

inline constexpr int kUpdatesShared = 10;
inline constexpr int64_t kSharedRows = 8;

struct SharedLayout {
  int tp = 1, cp = 1, dp = 1, zero = 0, pp = 1, ep = 1;
  std::vector<int64_t> layers = {};  // of each of the stages, as StageRank has them
  int runs = 1;
  shape::ContextKind kind = shape::ContextKind::kGather;
  int ranks() const { return tp * cp * dp * pp; }
  std::string name() const {
    return fmt::format("tp {} cp {} {} dp {} zero {} pp {} ep {}", tp, cp, words_of(kind).name(kind), dp, zero, pp, ep);
  }
};

// A shape whose blocks are large enough to be cut for several ranks.
inline shape::ModelShape wide_shape(int64_t hidden, size_t blocks, bool tied) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.tied_embeddings = tied;
  shape.hidden = hidden;
  shape::Block block = shape.blocks.front();
  block.attention = {.heads = 4, .kv_heads = 2, .head_dim = 16};
  block.mlp = {.intermediate = 96};
  shape.blocks.assign(blocks, block);
  return shape;
}

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
    model.tensor = {line(tensor_), {tensor, layout.tp}};
    model.stages = {line(stages_), {stage, layout.pp, layout.layers, layout.runs}};
    training = {rows_.get(), {line(context_), context, layout.cp, layout.kind}, copies_.get()};
    data_rank = data;
    if (layout.zero == 3)
      model.shares = {line(copies_ ? copies_ : context_), data * layout.cp + context, layout.dp * layout.cp};
    if (layout.ep == 1) return;
    const int copy = data * layout.cp + context, groups = layout.dp * layout.cp / layout.ep;
    experts_ = join("ep", pieces * groups + copy / layout.ep, copy % layout.ep, layout.ep);
    expert_copies_ = join("expert copies", pieces * layout.ep + copy % layout.ep, copy / layout.ep, groups);
    model.experts = {line(experts_), {copy % layout.ep, layout.ep}};
    training.expert_copies = expert_copies_.get();
    if (layout.zero == 3 && groups > 1) model.expert_shares = {line(expert_copies_), copy / layout.ep, groups};
  }

  model::ModelRanks model;
  TrainingRanks training;
  int data_rank = 0;

 private:
  static model::RankLine line(const std::unique_ptr<comm::Group>& group) {
    return {group.get(), comm::kDeadlineOfRanks};
  }
  std::unique_ptr<comm::Group> join(const std::string& axis, int line, int place, int size) const {
    if (size == 1) return nullptr;
    return comm::back_end("threads").join(
        {fmt::format("{} {} {}", name_, axis, line), "", place, size, comm::kDeadlineOfRanks});
  }
  std::string name_;
  std::unique_ptr<comm::Group> tensor_, context_, rows_, stages_, copies_, experts_, expert_copies_;
};

// body(rank, its lines) on each rank, which is a thread.
inline void on_lines_by_rank(const SharedLayout& layout, const std::string& name,
                             const std::function<void(int, const AxisLines&)>& body) {
  comm::with_ranks(layout.ranks(), name,
                   [&](comm::Group& all) { body(all.rank(), AxisLines(layout, all.rank(), name)); });
}
inline void on_lines(const SharedLayout& layout, const std::string& name,
                     const std::function<void(const AxisLines&)>& body) {
  on_lines_by_rank(layout, name, [&](int, const AxisLines& lines) { body(lines); });
}

// Samples of four prompts, two of each; pairs are samples of one prompt, the chosen one first.
inline Batch shared_samples() {
  batch::TokenRows samples;
  std::vector<int64_t> prompts;
  for (int64_t r = 0; r < kSharedRows; ++r) {
    const int64_t prompt = 3 + r / 2 * 9, tokens = prompt + 2 + 5 * r % 11;
    prompts.push_back(r / 2);
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < tokens; ++t)
      ids.push_back(static_cast<int32_t>((t < prompt ? 7 * t * t + r / 2 : 5 * t + 11 * r) % 37));
    samples.add(r, ids, static_cast<size_t>(prompt));
  }
  Batch rows = samples.batch();
  rows.set(batch::kPromptUid, prompts);
  return rows;
}

// One rank has this after some updates.
struct SharedRun {
  std::vector<float> start, values;  // of whole parameters, on the first tensor and expert rank of the first stage
  std::vector<UpdateReport> reports;
};

// Log-probs and entropies of a language model, values and scores of rows and tokens of another.
inline Objective objective_for(shape::Head head) {
  const bool language = head == shape::Head::kLanguageModel;
  const auto loss = [=](const Batch&, const batch::Quantities& now, const batch::GlobalCounts& counts,
                        const batch::Surveys&) {
    if (language) return -(now.log_probs.sum() + 0.1 * now.entropy.sum()) / counts.tokens;
    return now.values.square().sum() / counts.tokens + now.row_scores.square().sum() / counts.rows +
           (now.token_scores - 0.5).square().sum() / counts.tokens;
  };
  return {{.log_probs = language,
           .entropy = language,
           .values = !language,
           .row_scores = !language,
           .token_scores = !language},
          loss};
}

inline SharedRun trained_run(const shape::ModelShape& shape, const SharedLayout& layout, const AxisLines* lines) {
  const model::ModelRanks of = lines == nullptr ? model::ModelRanks() : lines->model;
  const auto weights = tiny_weights(shape, {.trained = true, .ranks = of});
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

inline void expect_same_run(const SharedRun& got, const SharedRun& one, const SharedLayout& layout,
                            const std::string& what) {
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

}  // namespace collimate::train::testing

// Ranks that share the experts of a mixture, against one rank: scores, checks, updates, shares.
#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/model/memory_plan.h"
#include "tests/support/train/shared_ranks.h"

namespace collimate::train {
namespace {

using namespace testing;  // NOLINT: test only

constexpr int kFirstExpertWorker = 61;  // in memory reports: of rank 0

int64_t expert_peak_of(int worker, const std::string& purpose) {
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == worker && use.purpose == purpose) return use.peak_bytes;
  return 0;
}

// A mixture whose embedding is large enough to be cut for four ranks of two pieces, its experts for two.
shape::ModelShape wide_mixture(const std::string& family) {
  shape::ModelShape shape = tiny_shape(family);
  shape.hidden = 48;
  shape.vocabulary = 800;
  for (shape::Block& block : shape.blocks) {
    block.mlp.intermediate = 160;
    if (block.mlp.experts.count > 0) block.mlp.experts.intermediate = 64;
  }
  return shape;
}

// Rows of the data ranks are unlike in number: the first has half of them, the last none.
Batch unequal_part(const Batch& rows, const AxisLines& lines, int ranks) {
  const int64_t first = lines.data_rank == 0 ? 0 : kSharedRows / 2 + lines.data_rank - 1;
  if (lines.data_rank + 1 == ranks) return rows.slice(0, 0);
  return rows.slice(first, lines.data_rank == 0 ? kSharedRows / 2 : first + 1);
}

TEST(ExpertRanks, ScoresHaveTheBitsOfOneRank) {
  const Batch rows = shared_samples();
  for (const std::string family : {"mixtral", "deepseek_v3"}) {
    const auto scored = [&](const Batch& part, const model::ModelRanks& of) {
      model::Model model(tiny_weights(tiny_shape(family), {.ranks = of}), {});
      const ScoringOptions options{.temperature = 0.7F, .micro_batch_tokens = 30};
      return with_log_probs(model, part, batch::kLogProbs, options).all(batch::kLogProbs);
    };
    for (const SharedLayout& layout : {SharedLayout{.dp = 2, .ep = 2}, {.dp = 4, .ep = 4}, {.dp = 2, .pp = 2, .ep = 2}})
      on_lines(layout, family + layout.name(), [&](const AxisLines& lines) {
        const Batch mine = unequal_part(rows, lines, layout.dp);
        EXPECT_EQ(scored(mine, lines.model), scored(mine, {})) << layout.name();
      });
  }
}

// Two updates over rows of which some ranks have more micro-batches, the last one none.
SharedRun unequal_run(const shape::ModelShape& shape, const SharedLayout& layout, const AxisLines& lines) {
  const model::ModelRanks& of = lines.model;
  const auto weights = tiny_weights(shape, {.trained = true, .ranks = of});
  EXPECT_EQ(weights->is_shared(0), layout.zero == 3);
  const int last = weights->segments() - 1;  // of experts
  if (weights->segment_floats(last) > 0) {
    EXPECT_EQ(weights->is_shared(last), of.expert_shares.several());
  }
  model::Model model(weights, {});
  const LearnerOptions options{.schedule = {.peak = 1e-3}, .micro_batch_tokens = 40, .zero = layout.zero};
  Learner learner(model, options, {}, lines.training);
  const Batch rows = unequal_part(shared_samples(), lines, layout.dp);
  SharedRun after;
  for (int i = 0; i < 2; ++i) after.reports.push_back(learner.update(rows, testing::objective_for(shape.head)));
  after.values = whole_values(*weights);
  return after;
}

class ExpertRanksTrain : public ::testing::TestWithParam<std::string> {};

TEST_P(ExpertRanksTrain, AsOneRank) {
  const shape::ModelShape shape = tiny_shape(GetParam());
  const SharedRun one = trained_run(shape, {}, nullptr);
  EXPECT_GT(distance(one.start, one.values), 0.1);
  for (const SharedLayout& layout : {SharedLayout{.dp = 2, .ep = 2},
                                     {.dp = 2, .zero = 1, .ep = 2},
                                     {.dp = 4, .ep = 2},
                                     {.dp = 4, .zero = 1, .ep = 2},
                                     {.dp = 4, .zero = 2, .ep = 2},
                                     {.dp = 4, .zero = 2, .ep = 4},
                                     {.tp = 2, .dp = 4, .zero = 1, .ep = 2},
                                     {.dp = 2, .zero = 2, .pp = 2, .ep = 2},
                                     {.cp = 2, .ep = 2},
                                     {.cp = 2, .dp = 2, .zero = 1, .ep = 4},
                                     {.cp = 2, .dp = 2, .zero = 2, .ep = 2}}) {
    const std::string name = fmt::format("experts {} {}", shape.family, layout.name());
    std::vector<SharedRun> all(static_cast<size_t>(layout.ranks()));
    on_lines_by_rank(layout, name, [&](int rank, const AxisLines& lines) {
      base::at(all, rank) = trained_run(shape, layout, &lines);
    });
    for (const SharedRun& got : all) expect_same_run(got, one, layout, name);
    EXPECT_FALSE(all.front().values.empty());
    for (const SharedRun& got : all) {
      EXPECT_EQ(got.reports.back().grad_norm, all.front().reports.back().grad_norm) << name;
      if (!got.values.empty()) {
        EXPECT_EQ(got.values, all.front().values) << name;
      }
    }
  }
}

// Ranks that keep parts of the weights too, of an expert those that have it; some of them have fewer micro-batches.
TEST_P(ExpertRanksTrain, WithSharedWeightsAsWithWholeOnes) {
  const shape::ModelShape shape = wide_mixture(GetParam());
  for (SharedLayout layout : {SharedLayout{.dp = 2, .ep = 2},
                              {.dp = 4, .ep = 2},
                              {.dp = 4, .ep = 4},
                              {.tp = 2, .dp = 4, .ep = 2},
                              {.dp = 2, .pp = 2, .ep = 2},
                              {.cp = 2, .dp = 2, .ep = 2}}) {
    const auto run_of = [&](int zero) {
      layout.zero = zero;
      std::vector<SharedRun> all(static_cast<size_t>(layout.ranks()));
      on_lines_by_rank(
          layout, fmt::format("shared experts {} {}", shape.family, layout.name()),
          [&](int rank, const AxisLines& lines) { base::at(all, rank) = unequal_run(shape, layout, lines); });
      return all;
    };
    const std::vector<SharedRun> whole = run_of(2), shared = run_of(3);
    for (size_t r = 0; r < whole.size(); ++r) {
      EXPECT_TRUE(whole[r].values == shared[r].values) << layout.name() << " rank " << r;
      for (size_t u = 0; u < whole[r].reports.size(); ++u) {
        EXPECT_EQ(whole[r].reports[u].loss, shared[r].reports[u].loss) << layout.name();
        EXPECT_EQ(whole[r].reports[u].grad_norm, shared[r].reports[u].grad_norm) << layout.name();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mixtures, ExpertRanksTrain, ::testing::Values("mixtral", "deepseek_v3"));

// A rank that has no rows at all, in surveys and updates.
TEST(ExpertRanks, ARankWithoutRowsTrainsWithTheOthers) {
  const Batch rows = shared_samples();
  const auto loss = [](const Batch&, const batch::Quantities& now, const batch::GlobalCounts& counts,
                       const batch::Surveys& surveys) {
    return -(now.log_probs * surveys[0].all.mean()).sum() / counts.tokens;
  };
  const auto survey = [](const Batch&, const batch::Quantities& now) { return std::vector{now.log_probs.detach()}; };
  const auto trained = [&](const Batch& part, const model::ModelRanks& of, const TrainingRanks& ranks) {
    const auto weights = tiny_weights(tiny_shape("mixtral"), {.trained = true, .ranks = of});
    model::Model model(weights, {});
    const LearnerOptions options{.schedule = {.peak = 1e-3}, .micro_batch_tokens = 30, .zero = 2};
    Learner learner(model, options, {}, ranks);
    learner.update(part, {{}, loss, 1, survey});
    return whole_values(*weights);
  };
  const std::vector<float> start = whole_values(*tiny_weights(tiny_shape("mixtral")));
  const std::vector<float> one = trained(rows.slice(0, kSharedRows / 2), {}, {});
  on_lines({.dp = 2, .ep = 2}, "no rows", [&](const AxisLines& lines) {
    const auto values = trained(unequal_part(rows, lines, 2), lines.model, lines.training);
    if (!values.empty()) {
      EXPECT_LE(distance(values, one), 1e-3 * distance(start, one));
    }
  });
}

// A state of one rank goes through ranks that share experts, and back: it goes on with the bits that it had.
TEST(ExpertRanks, SavedStatesLoadIntoAnyLayout) {
  const Batch rows = shared_samples();
  const Objective objective = testing::objective_for(shape::Head::kLanguageModel);
  const auto run_of = [&](const SharedLayout& layout, const AxisLines* lines,
                          const std::function<void(Learner&, const model::Weights&)>& body) {
    const model::ModelRanks of = lines == nullptr ? model::ModelRanks() : lines->model;
    const auto weights = tiny_weights(wide_mixture("deepseek_v3"), {.trained = true, .ranks = of});
    model::Model model(weights, {});
    Learner learner(model, {.schedule = {.peak = 1e-3}, .zero = layout.zero}, {},
                    lines == nullptr ? TrainingRanks() : lines->training);
    body(learner, *weights);
  };
  base::MemoryState saved;
  std::vector<float> expected, next;
  run_of({}, nullptr, [&](Learner& learner, const model::Weights& weights) {
    learner.update(rows, objective);
    learner.save(saved);
    expected = whole_values(weights);
    learner.update(rows, objective);
    next = whole_values(weights);
  });
  for (const int zero : {1, 3}) {
    const SharedLayout layout{.tp = 2, .dp = 4, .zero = zero, .ep = 2};
    std::vector<base::MemoryState> states(static_cast<size_t>(layout.ranks()));
    on_lines_by_rank(layout, "states " + layout.name(), [&](int rank, const AxisLines& lines) {
      run_of(layout, &lines, [&](Learner& learner, const model::Weights& weights) {
        base::MemoryState own = saved;
        learner.load(own);
        const std::vector<float> values = whole_values(weights);
        if (!values.empty()) {
          EXPECT_EQ(values, expected);
        }
        learner.save(base::at(states, rank));
      });
    });
    base::MemoryState passed = states.front();
    for (size_t rank = 1; rank < states.size(); ++rank) passed.add_tensors_of(states[rank], std::to_string(rank));
    run_of({}, nullptr, [&](Learner& learner, const model::Weights& weights) {
      learner.load(passed);
      EXPECT_EQ(whole_values(weights), expected);
      learner.update(rows, objective);
      EXPECT_EQ(whole_values(weights), next);
    });
  }
}

// Each rank has what the plan says of weights, gradients and the optimizer.
TEST(ExpertRanks, TakeTheMemoryThatIsPlanned) {
  const shape::ModelShape shape = wide_mixture("mixtral");
  for (const SharedLayout& layout :
       {SharedLayout{.dp = 2, .ep = 2}, {.dp = 4, .zero = 1, .ep = 2}, {.dp = 4, .zero = 3, .ep = 2}})
    on_lines_by_rank(layout, "memory " + layout.name(), [&](int rank, const AxisLines& lines) {
      const tensor::MemoryScope scope(kFirstExpertWorker + rank, "tensors");
      tensor::reset_memory_peaks(kFirstExpertWorker + rank);
      trained_run(shape, layout, &lines);
      const model::WeightsOptions options{.trained = true, .ranks = lines.model};
      for (const tensor::MemoryItem& item :
           model::weights_memory(shape, options, model::Sharing{layout.zero, layout.dp})) {
        const int64_t took = expert_peak_of(kFirstExpertWorker + rank, "model/" + item.purpose);
        EXPECT_LE(took, item.bytes) << item.purpose << layout.name() << rank;
        EXPECT_GT(took, 0) << item.purpose << layout.name() << rank;
        if (layout.zero == 0) {  // else the plan is that of the rank that takes the most
          EXPECT_GE(took, item.bytes - item.bytes / 10) << item.purpose << layout.name() << rank;
        }
      }
    });
}

}  // namespace
}  // namespace collimate::train

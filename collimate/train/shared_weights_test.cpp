// Ranks that share the weights too (stage 3 of ZeRO), against ranks that each have all of them.
#include <ATen/TensorOperators.h>

#include <map>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/model/memory_plan.h"
#include "collimate/train/learner.h"
#include "collimate/train/scoring.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/model/whole_values.h"
#include "tests/support/train/shared_ranks.h"
#include "tests/support/train/small_rows.h"

namespace collimate::train {
namespace {

using model::Recompute;
using model::testing::whole_values;
using testing::AxisLines;
using testing::on_lines_by_rank;

constexpr int kSteps = 2;
constexpr int kAllRows = 12;

struct ShareLayout {
  int dp = 1, tp = 1, pp = 1, zero = 0;
  bool tied = false;
  Recompute recompute = Recompute::kNone;
  int64_t micro_batch_tokens = 200;  // all rows at once
  int lora_rank = 0;
  std::vector<int64_t> rows = {};  // of each data rank; empty: as many of each
  std::string name() const {
    return fmt::format("{} tied {} recompute {} tokens {} lora {}", axes().name(), tied, recompute == Recompute::kFull,
                       micro_batch_tokens, lora_rank);
  }
  testing::SharedLayout axes() const { return {.tp = tp, .dp = dp, .zero = zero, .pp = pp}; }
};

// A shape whose blocks are large enough to be cut for four ranks of two pieces; the last norm is not.
shape::ModelShape shared_shape(bool tied) {
  shape::ModelShape shape = testing::wide_shape(128, 3, tied);
  shape.vocabulary = 160;
  return shape;
}

Batch numbered_rows(int64_t first, int64_t count) {
  return small::rows_of_lengths({5, 7, 9, 6, 8, 5, 4, 9, 7, 6, 5, 8}, first, count);
}

struct SharedRun {
  SharedRun(const ShareLayout& layout, const AxisLines& lines)
      : weights(model::testing::tiny_weights(
            shared_shape(layout.tied), {.trained = true, .lora = {.rank = layout.lora_rank}, .ranks = lines.model})),
        learner(decoder,
                {.schedule = {.peak = 1e-2},
                 .adam = {.epsilon = 1e-4},
                 .max_grad_norm = 0.5,
                 .micro_batch_tokens = layout.micro_batch_tokens,
                 .zero = layout.zero,
                 .recompute = layout.recompute},
                {}, lines.training),
        rows(layout.rows.empty() ? std::vector<int64_t>(static_cast<size_t>(layout.dp), kAllRows / layout.dp)
                                 : layout.rows),
        data(lines.data_rank) {
    if (layout.lora_rank > 0) model::initialize_lora(*weights, 4);
  }
  Batch own_rows() const {
    const auto first = rows.begin() + data;
    return numbered_rows(std::accumulate(rows.begin(), first, int64_t{0}), *first);
  }
  UpdateReport update() {
    const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                         const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
    return learner.update(own_rows(), {{}, loss});
  }

  std::shared_ptr<model::Weights> weights;
  model::Model decoder{weights, {}};
  Learner learner;
  std::vector<int64_t> rows;
  int data;
};

// The first rank has this after some updates: losses and norms, whole values, a checksum.
struct SharedOutcome {
  std::vector<double> numbers;
  std::vector<float> values;
  uint64_t checksum = 0;
};

SharedOutcome outcome_of(const ShareLayout& layout) {
  SharedOutcome first;
  on_lines_by_rank(layout.axes(), layout.name(), [&](int rank, const AxisLines& lines) {
    SharedRun run(layout, lines);
    SharedOutcome mine;
    for (int i = 0; i < kSteps; ++i) {
      const UpdateReport report = run.update();
      mine.numbers.push_back(report.loss);
      mine.numbers.push_back(report.grad_norm);
    }
    mine.checksum = run.weights->checksum();
    mine.values = whole_values(*run.weights);
    if (rank == 0) first = std::move(mine);
  });
  return first;
}

void expect_equal(const SharedOutcome& one, const SharedOutcome& other, const std::string& what) {
  EXPECT_EQ(one.numbers, other.numbers) << what;
  EXPECT_EQ(one.checksum, other.checksum) << what;
  EXPECT_TRUE(one.values == other.values) << what;
}

SharedOutcome with_zero(ShareLayout layout, int zero) {
  layout.zero = zero;
  return outcome_of(layout);
}

TEST(SharedWeights, TrainWithTheBitsOfWholeOnes) {
  for (const int dp : {2, 3, 4})
    for (const bool tied : {false, true})
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        const ShareLayout layout{.dp = dp, .tied = tied, .recompute = recompute};
        expect_equal(with_zero(layout, 0), with_zero(layout, 3), layout.name());
      }
}

// Sums of pieces and of tied ends are in the order of stage 2.
TEST(SharedWeights, PiecesAndStagesTrainAsWithWholeOnes) {
  for (const ShareLayout& layout : {ShareLayout{.dp = 2, .tp = 2},
                                    {.dp = 3, .tp = 2, .tied = true},
                                    {.dp = 4, .tp = 2},
                                    {.dp = 2, .pp = 2},
                                    {.dp = 2, .pp = 3, .tied = true},
                                    {.dp = 2, .tp = 2, .pp = 2, .micro_batch_tokens = 12}})
    expect_equal(with_zero(layout, 2), with_zero(layout, 3), layout.name());
}

TEST(SharedWeights, RanksMayHaveUnlikeNumbersOfMicroBatches) {
  for (const int pp : {1, 2})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const ShareLayout layout{.dp = 3, .pp = pp, .recompute = recompute, .micro_batch_tokens = 12, .rows = {7, 1, 4}};
      expect_equal(with_zero(layout, 2), with_zero(layout, 3), layout.name());
    }
  const ShareLayout without{.dp = 2, .micro_batch_tokens = 12, .rows = {12, 0}};
  expect_equal(with_zero(without, 2), with_zero(without, 3), "a rank without rows");
}

// The model is frozen and shared; adapters are whole, and their gradients and optimizer shared.
TEST(SharedWeights, AdaptersTrainBesideAFrozenModelThatIsShared) {
  for (const bool tied : {false, true})
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      const ShareLayout layout{.dp = 2, .tied = tied, .recompute = recompute, .lora_rank = 4};
      expect_equal(with_zero(layout, 2), with_zero(layout, 3), layout.name());
    }
}

TEST(SharedWeights, ScoreUnlikeNumbersOfRows) {
  for (const bool tied : {false, true}) {
    const auto whole = model::testing::tiny_weights(shared_shape(tied), {});
    model::Model reference(whole, {});
    const Key<float> key{.name = "scored", .ragged = true};
    const ScoringOptions options{.micro_batch_tokens = 12};
    const Batch expected = with_log_probs(reference, numbered_rows(0, kAllRows), key, options);
    const std::vector<int64_t> counts = {9, 0, 3};
    comm::with_ranks(3, "scored", [&](comm::Group& group) {
      const auto shared = model::testing::tiny_weights(
          shared_shape(tied), {.ranks = {.shares = {{&group, comm::kDeadlineOfRanks}, group.rank(), 3}}});
      model::Model model(shared, {});
      const auto mine = counts.begin() + group.rank();
      const Batch rows = numbered_rows(std::accumulate(counts.begin(), mine, int64_t{0}), *mine);
      const Batch scored = with_log_probs(model, rows, key, options);
      ASSERT_EQ(scored.rows(), *mine);
      for (int64_t r = 0; r < *mine; ++r) {
        const auto is = scored.row(key, r), was = expected.row(key, rows.get(batch::kUid, r));
        EXPECT_TRUE(std::equal(is.begin(), is.end(), was.begin(), was.end())) << r << " of rank " << group.rank();
      }
    });
  }
}

// Saves behind two updates, loads by another layout, updates once more there.
SharedOutcome moved(const ShareLayout& from, const ShareLayout& to) {
  std::vector<base::MemoryState> states(static_cast<size_t>(from.dp));
  on_lines_by_rank(from.axes(), from.name(), [&](int rank, const AxisLines& lines) {
    SharedRun run(from, lines);
    for (int i = 0; i < kSteps; ++i) run.update();
    run.learner.save(base::at(states, rank));
  });
  base::MemoryState saved = states.front();
  for (size_t r = 1; r < states.size(); ++r) saved.add_tensors_of(states[r], fmt::format("rank {}", r));
  SharedOutcome first;
  on_lines_by_rank(to.axes(), "to " + to.name(), [&](int rank, const AxisLines& lines) {
    SharedRun run(to, lines);
    base::MemoryState own = saved;
    run.learner.load(own);
    run.update();
    SharedOutcome mine{.values = whole_values(*run.weights)};
    if (rank == 0) first = std::move(mine);
  });
  return first;
}

TEST(SharedWeights, AreSavedOnceAndGoOnInAnyLayout) {
  const ShareLayout one{}, two{.dp = 2, .zero = 3}, three{.dp = 3, .zero = 3}, whole{.dp = 2, .zero = 1};
  for (const ShareLayout& from : {two, three, whole}) {
    const SharedOutcome expected = moved(from, {.dp = 2, .zero = 0});
    EXPECT_TRUE(moved(from, two).values == expected.values) << from.name();
    EXPECT_TRUE(moved(from, whole).values == expected.values) << from.name();
    EXPECT_TRUE(moved(from, three).values == moved(from, {.dp = 3}).values) << from.name();
  }
  EXPECT_TRUE(moved(two, one).values == moved(whole, one).values);
}

constexpr int kFirstSharer = 131;  // in memory reports: of rank 0

std::map<std::string, int64_t> peaks_of(int worker) {
  std::map<std::string, int64_t> peaks;
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == worker && use.purpose.starts_with("model/")) peaks[use.purpose.substr(6)] = use.peak_bytes;
  return peaks;
}

// Every stage of ZeRO takes what its formula says.
TEST(SharedWeights, TakeTheMemoryThatIsPlanned) {
  for (const bool tied : {false, true})
    for (const int zero : {0, 1, 2, 3}) {
      const ShareLayout layout{.dp = 2, .zero = zero, .tied = tied, .recompute = Recompute::kFull};
      model::WeightsOptions options{.trained = true};
      if (zero == 3) options.ranks.shares.ranks = layout.dp;
      int64_t taken = 0, planned = 0;
      on_lines_by_rank(layout.axes(), "memory " + layout.name(), [&](int rank, const AxisLines& lines) {
        const int worker = kFirstSharer + rank;
        const tensor::MemoryScope scope(worker, "tensors");
        tensor::reset_memory_peaks(worker);
        SharedRun run(layout, lines);
        run.update();
        if (rank + 1 < layout.dp) return;  // the last one has the most
        for (const auto& item : model::weights_memory(shared_shape(tied), options, model::Sharing{zero, layout.dp})) {
          const int64_t peak = peaks_of(worker)[item.purpose];
          EXPECT_LE(peak, item.bytes) << item.purpose << " " << layout.name();
          EXPECT_GE(static_cast<double>(peak), 0.9 * static_cast<double>(item.bytes))
              << item.purpose << " " << layout.name();
          taken += peak, planned += item.bytes;
        }
      });
      RecordProperty(fmt::format("zero_{}_{}", zero, tied ? "tied" : "untied"), std::to_string(taken));
    }
}

}  // namespace
}  // namespace collimate::train

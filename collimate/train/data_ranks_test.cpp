// Ranks that share an optimizer, against ranks that each have all of it.
#include "collimate/train/data_ranks.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/model/memory_plan.h"
#include "collimate/tensor/ops/optimizer.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/model/whole_values.h"
#include "tests/support/train/shared_ranks.h"
#include "tests/support/train/small_rows.h"

namespace collimate::train {
namespace {

using model::testing::distance;
using model::testing::whole_values;
using testing::SharedLayout;

constexpr int kUpdates = 3;

// The blocks are large enough to be cut for three ranks, the head's segment for none.
shape::ModelShape wide_shape(bool tied = true) { return testing::wide_shape(64, 8, tied); }

Batch wide_rows(int64_t first, int64_t count) { return small::rows_of_lengths({5, 7, 9, 6, 8, 5}, first, count); }

// One rank has this after some updates.
struct After {
  std::vector<float> values;
  std::vector<double> norms, losses;
  int64_t optimizer_bytes = 0, optimizer_peak = 0, gradient_peak = 0;  // as the allocator counts
};

constexpr int kFirstWorker = 81;  // in memory reports: of rank 0

int64_t held_by(int worker, const std::string& purpose) {
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == worker && use.purpose == purpose) return use.bytes;
  return 0;
}

int64_t peak_of(int worker, const std::string& purpose) {
  for (const tensor::MemoryUse& use : tensor::memory_report())
    if (use.worker == worker && use.purpose == purpose) return use.peak_bytes;
  return 0;
}

struct Trained {
  Trained(comm::Group* group, int zero, const model::ModelRanks& ranks = {}, bool tied = true)
      : weights(model::testing::tiny_weights(wide_shape(tied), {.trained = true, .ranks = ranks})),
        // By this epsilon gradients that are 0 but for rounding move nothing.
        learner(decoder,
                {.schedule = {.peak = 1e-2},
                 .adam = {.epsilon = 1e-4},
                 .max_grad_norm = 0.5,
                 .micro_batch_tokens = 12,
                 .zero = zero},
                {}, {group}) {}

  void update(const Batch& rows, After& after) {
    const auto loss = [](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                         const batch::Surveys&) { return -quantities.log_probs.sum() / counts.tokens; };
    const UpdateReport report = learner.update(rows, {{}, loss});
    after.norms.push_back(report.grad_norm);
    after.losses.push_back(report.loss);
  }
  void look(After& after) {
    for (int s = 0; s < weights->segments(); ++s) {
      const auto values = weights->master(s);
      after.values.insert(after.values.end(), values.begin(), values.end());
    }
  }

  std::shared_ptr<model::Weights> weights;
  model::Model decoder{weights, {}};
  Learner learner;
};

std::vector<After> updated(int ranks, int zero) {
  std::vector<After> all(static_cast<size_t>(ranks));
  comm::with_ranks(ranks, "shares", [&](comm::Group& group) {
    const int worker = kFirstWorker + group.rank();
    const tensor::MemoryScope scope(worker, "tensors");
    tensor::reset_memory_peaks(worker);
    Trained run(&group, zero);
    After& mine = base::at(all, group.rank());
    const int64_t count = 6 / ranks;
    for (int i = 0; i < kUpdates; ++i) run.update(wide_rows(group.rank() * count, count), mine);
    run.look(mine);
    mine.optimizer_bytes = held_by(worker, "model/optimizer");
    mine.gradient_peak = peak_of(worker, "model/gradient");
    mine.optimizer_peak = peak_of(worker, "model/optimizer");
  });
  return all;
}

TEST(DataRanks, SharingTheOptimizerChangesNoBit) {
  for (const int ranks : {2, 3}) {
    const std::vector<After> whole = updated(ranks, 0), shared = updated(ranks, 1);
    int64_t bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(base::at(shared, r).values, base::at(whole, 0).values) << r << " of " << ranks;
      EXPECT_EQ(base::at(shared, r).norms, base::at(whole, 0).norms);
      EXPECT_EQ(base::at(shared, r).losses, base::at(whole, 0).losses);
      EXPECT_LT(base::at(shared, r).optimizer_bytes, base::at(whole, 0).optimizer_bytes);
      bytes += base::at(shared, r).optimizer_bytes;
    }
    // Nothing is there twice, but for what the allocator rounds up.
    EXPECT_GT(bytes, whole[0].optimizer_bytes * 7 / 8);
    EXPECT_LT(bytes, whole[0].optimizer_bytes * 5 / 4);
    EXPECT_GT(whole[0].norms.front(), 0.5) << "nothing was clipped";
  }
}

// Sums over micro-batches and ranks change places. The ranks have unlike numbers of micro-batches.
TEST(DataRanks, SharesOfGradientsAreTheirSumsOverRanks) {
  const std::vector<After> whole = updated(2, 0), shared = updated(2, 2), again = updated(2, 2);
  const std::vector<float> start = [] {
    After before;
    Trained(nullptr, 0).look(before);
    return before.values;
  }();
  for (int r = 0; r < 2; ++r) {
    const After &one = base::at(shared, r), &other = base::at(whole, r);
    EXPECT_EQ(one.values, base::at(again, r).values);
    EXPECT_EQ(one.values, shared[0].values);
    EXPECT_LT(distance(one.values, other.values), 1e-3 * distance(start, other.values));
    for (size_t i = 0; i < one.norms.size(); ++i) EXPECT_NEAR(one.norms[i], other.norms[i], 1e-5 * other.norms[i]);
    EXPECT_EQ(one.losses.front(), other.losses.front());
    EXPECT_LT(one.gradient_peak, 0.8 * static_cast<double>(other.gradient_peak));
  }
  for (const int zero : {0, 1, 2}) {
    const After last = updated(2, zero).back();
    for (const tensor::MemoryItem& item : model::weights_memory(wide_shape(), {true}, model::Sharing{zero, 2})) {
      if (item.purpose == "gradient") {
        EXPECT_EQ(item.bytes, last.gradient_peak) << zero;
      } else if (item.purpose == "optimizer") {
        EXPECT_EQ(item.bytes, last.optimizer_peak) << zero;
      }
    }
  }
}

struct Layout {
  int ranks = 1, zero = 0;
};

// Ranks have saved this after some updates, and have that after one more.
struct SavedRun {
  base::MemoryState state;  // of all ranks
  std::vector<After> straight;
};

// Has every rank begin at `begin`, if there is one, save behind `updates` updates of its share of six rows, and make
// one more.
SavedRun saved_run(Layout layout, int updates, const base::MemoryState* begin = nullptr) {
  const auto count = static_cast<size_t>(layout.ranks);
  std::vector<base::MemoryState> states(count);
  SavedRun saved{.straight = std::vector<After>(count)};
  comm::with_ranks(layout.ranks, "saved", [&](comm::Group& group) {
    const int64_t rows = 6 / layout.ranks;
    const Batch mine = wide_rows(group.rank() * rows, rows);
    After& after = base::at(saved.straight, group.rank());
    Trained run(layout.ranks == 1 ? nullptr : &group, layout.zero);
    if (begin != nullptr) {
      run.update(wide_rows(group.rank(), 1), after);  // what is loaded takes the place of all of this
      base::MemoryState own = *begin;
      run.learner.load(own);
    }
    for (int i = 0; i < updates; ++i) run.update(mine, after);
    run.learner.save(base::at(states, group.rank()));
    run.update(mine, after);
    run.look(after);
  });
  saved.state = states.front();
  for (size_t r = 1; r < count; ++r) saved.state.add_tensors_of(states[r], fmt::format("rank {}", r));
  return saved;
}

TEST(DataRanks, SharesAreSavedAndGoOn) {
  for (const int zero : {0, 1, 2}) {
    const SavedRun straight = saved_run({2, zero}, 2), resumed = saved_run({2, zero}, 0, &straight.state);
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(base::at(resumed.straight, r).values, base::at(straight.straight, r).values) << zero;
      EXPECT_EQ(base::at(resumed.straight, r).norms.back(), base::at(straight.straight, r).norms.back());
    }
  }
}

// Any layout goes on from what any other has saved, and saves the same again.
TEST(DataRanks, AnotherLayoutGoesOnFromTheSharesOfOne) {
  const std::vector<Layout> layouts = {{1, 0}, {2, 0}, {2, 1}, {3, 1}, {3, 2}};
  for (const Layout& from : layouts) {
    const SavedRun saved = saved_run(from, 2);
    const std::vector<float> expected = saved_run({1, 0}, 0, &saved.state).straight[0].values;
    for (const Layout& to : layouts) {
      const std::string what = fmt::format("{} of stage {} to {} of {}", from.ranks, from.zero, to.ranks, to.zero);
      const SavedRun there = saved_run(to, 0, &saved.state);
      EXPECT_EQ(saved_run({1, 0}, 0, &there.state).straight[0].values, expected) << what;
      EXPECT_LT(distance(there.straight[0].values, expected),
                1e-4 * distance(expected, saved.straight[0].values) + 1e-3)
          << what;
      if (to.zero == 1) {
        EXPECT_EQ(there.straight[0].values, saved_run({to.ranks, 0}, 0, &saved.state).straight[0].values) << what;
      }
    }
  }
}

// Trains by that layout; gives the whole parameters, which the first rank has, and its norms and losses.
After trained_by(const SharedLayout& layout, bool tied = false) {
  After first;
  testing::on_lines_by_rank(layout, layout.name(), [&](int rank, const testing::AxisLines& lines) {
    Trained run(lines.training.rows, layout.zero, lines.model, tied);
    After mine;
    const int64_t count = 6 / layout.dp;
    for (int i = 0; i < kUpdates; ++i) run.update(wide_rows(lines.data_rank * count, count), mine);
    mine.values = whole_values(*run.weights);
    if (rank == 0) first = std::move(mine);
  });
  return first;
}

TEST(DataRanks, StagesUpdateWithTheBitsOfOne) {
  for (const int dp : {1, 2})
    for (const int zero : {0, 1}) {
      const After one = trained_by({.dp = dp, .zero = dp == 1 ? 0 : zero});
      for (const int pp : {2, 3, 8}) {
        const After staged = trained_by({.dp = dp, .zero = zero, .pp = pp});
        EXPECT_EQ(staged.losses, one.losses) << pp << " stages of " << dp;
        EXPECT_EQ(staged.norms, one.norms) << pp << " stages of " << dp;
        EXPECT_EQ(staged.values, one.values) << pp << " stages of " << dp;
      }
    }
}

TEST(DataRanks, StagesOfAnyLayersUpdateWithTheBitsOfOne) {
  const After one = trained_by({});
  const int64_t blocks = wide_shape(false).layers();
  for (const std::vector<int64_t>& layers :
       {std::vector<int64_t>{1, blocks - 1}, {blocks - 1, 1}, {2, 1, blocks - 3}}) {
    const After staged = trained_by({.pp = static_cast<int>(layers.size()), .layers = layers});
    EXPECT_EQ(staged.losses, one.losses) << layers.front();
    EXPECT_EQ(staged.norms, one.norms) << layers.front();
    EXPECT_EQ(staged.values, one.values) << layers.front();
  }
}

// Each rank has several stages, which the schedule interleaves.
TEST(DataRanks, InterleavedStagesUpdateWithTheBitsOfOne) {
  for (const int dp : {1, 2}) {
    const After one = trained_by({.dp = dp, .zero = dp == 1 ? 0 : 1});
    for (const SharedLayout& layout : {SharedLayout{.dp = dp, .zero = dp - 1, .pp = 2, .runs = 2},
                                       {.dp = dp, .zero = dp - 1, .pp = 3, .runs = 2},
                                       {.dp = dp, .zero = dp - 1, .pp = 2, .runs = 4},
                                       {.dp = dp, .zero = dp - 1, .pp = 2, .layers = {1, 3, 3, 1}, .runs = 2}}) {
      const After staged = trained_by(layout);
      EXPECT_EQ(staged.losses, one.losses) << layout.name() << " runs " << layout.runs;
      EXPECT_EQ(staged.norms, one.norms) << layout.name() << " runs " << layout.runs;
      EXPECT_EQ(staged.values, one.values) << layout.name() << " runs " << layout.runs;
    }
  }
}

// Sums are in another order where the embedding is the head, of pieces, and of shares of gradients. Each two of four
// tensor ranks have the same key-value head.
TEST(DataRanks, AnyLayoutUpdatesAsOneRank) {
  for (const bool tied : {false, true}) {
    const After one = trained_by({}, tied);
    const std::vector<float> start = whole_values(*Trained(nullptr, 0, {}, tied).weights);
    for (const SharedLayout& layout : {SharedLayout{.pp = 2},
                                       {.dp = 2, .zero = 1, .pp = 3},
                                       {.dp = 2, .zero = 2, .pp = 2},
                                       {.tp = 2},
                                       {.tp = 4},
                                       {.tp = 2, .dp = 2},
                                       {.tp = 2, .dp = 2, .zero = 1},
                                       {.tp = 4, .dp = 2, .zero = 2},
                                       {.tp = 2, .pp = 2},
                                       {.tp = 2, .dp = 2, .zero = 2, .pp = 2},
                                       {.dp = 2, .zero = 2, .pp = 2, .runs = 2},
                                       {.tp = 2, .pp = 2, .runs = 3}}) {
      const After other = trained_by(layout, tied);
      const std::string name = fmt::format("{} tied {}", layout.name(), tied);
      EXPECT_NEAR(other.norms[0], one.norms[0], 1e-5 * one.norms[0]) << name;
      EXPECT_NEAR(other.losses[0], one.losses[0], 1e-5 * std::abs(one.losses[0])) << name;
      EXPECT_LT(distance(other.values, one.values), 1e-3 * distance(start, one.values)) << name;
    }
  }
}

// More tokens than fp32 counts one by one.
TEST(DataRanks, CountsAreExact) {
  comm::with_ranks(2, "counts", [&](comm::Group& group) {
    Trained run(&group, 0);
    const DataRanks ranks(*run.weights, {}, {&group}, 0, comm::kDeadlineOfRanks);
    const double tokens = (1 << 24) + 1, chosen = 3.5 * (group.rank() + 1);
    const batch::GlobalCounts sums = ranks.sum_counts({tokens, 1, chosen});
    EXPECT_EQ(sums.tokens, 2 * tokens);
    EXPECT_EQ(sums.rows, 2);
    EXPECT_EQ(sums.chosen_tokens, 10.5);
  });
}

TEST(DataRanks, SharesAreAllOfASegmentInOrder) {
  for (const int64_t floats : {0L, 16L, 4096L, 9000L, 81920L, 100000L})
    for (const int ranks : {1, 2, 3, 7}) {
      int64_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const model::Share share = model::share_of(floats, r, ranks);
        EXPECT_EQ(share.begin, next);
        EXPECT_EQ(share.begin % tensor::kSquaresChunk, 0);
        EXPECT_GE(share.count(), share.piece);
        EXPECT_LT(share.count(), share.piece + ranks * tensor::kSquaresChunk);
        next = share.end;
      }
      EXPECT_EQ(next, floats);
    }
}

}  // namespace
}  // namespace collimate::train

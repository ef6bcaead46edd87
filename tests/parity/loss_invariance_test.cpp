#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "collimate/comm/group.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/train/micro_batch.h"
#include "tests/parity/small_learner.h"

namespace collimate::test {
namespace {

constexpr int64_t kRows = 12;

struct Case {
  std::string name;
  const char* head;
  rlhf::Loss loss;
  std::vector<std::string> without_gradient;  // tensors
};

// The rows in another order, pairs kept together.
Batch reversed(const Batch& rows) {
  std::vector<int64_t> order;
  for (int64_t pair = rows.rows() / 2 - 1; pair >= 0; --pair) order.insert(order.end(), {2 * pair, 2 * pair + 1});
  return rows.gather(order);
}

// What an update's loss and gradients are.
struct Outcome {
  double loss = 0;
  std::vector<std::vector<double>> gradients;  // by parameter
};

Outcome outcome_of(SmallLearner& small, const Case& c, const Batch& rows, const batch::GlobalCounts& counts) {
  Outcome out;
  out.loss = small.accumulate(rows, c.loss, counts).loss;
  for (int p = 0; p < static_cast<int>(small.weights->params().size()); ++p) out.gradients.push_back(small.gradient(p));
  return out;
}

// All rows in one micro-batch against other ways to compute the same. The bound of a tensor is 1e-5·√Σ‖g_unit‖², over
// the gradients of the smallest units (rows or pairs) alone.
class Reference {
 public:
  Reference(const fs::path& start, const Case& c, const Batch& all = training_rows(kRows)) : case_(c) {
    counts_ = train::count_rows(all);
    SmallLearner whole(start, c.head, 100000), unit(start, c.head, 1);
    whole_ = outcome_of(whole, c, all, counts_);
    squares_.resize(whole_.gradients.size());
    for (int64_t r = 0; r < kRows; r += 2) {
      const Outcome one = outcome_of(unit, c, all.slice(r, r + 2), counts_);
      for (size_t p = 0; p < squares_.size(); ++p)
        for (double g : one.gradients[p]) squares_[p] += g * g;
    }
    for (const auto& param : whole.weights->params()) names_.push_back(param.name);
    std::vector<std::string> zero;
    for (size_t p = 0; p < squares_.size(); ++p)
      if (squares_[p] == 0) zero.push_back(names_[p]);
    EXPECT_EQ(zero, c.without_gradient) << c.name;
  }

  const batch::GlobalCounts& counts() const { return counts_; }

  void expect_same(const Outcome& other, const std::string& how) const {
    EXPECT_NEAR(other.loss, whole_.loss, 1e-6 * std::abs(whole_.loss) + 1e-9) << case_.name << " " << how;
    for (size_t p = 0; p < squares_.size(); ++p) {
      double difference = 0;
      for (size_t i = 0; i < other.gradients[p].size(); ++i) {
        const double d = other.gradients[p][i] - whole_.gradients[p][i];
        difference += d * d;
      }
      EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(squares_[p])) << case_.name << " " << how << " " << names_[p];
    }
  }

 private:
  const Case& case_;
  batch::GlobalCounts counts_;
  Outcome whole_;
  std::vector<double> squares_;
  std::vector<std::string> names_;
};

Case case_of(const std::string& rows, const std::string& type, double beta, const std::string& level = "token") {
  rlhf::LossSetting setting{.completion_tokens = 8};
  setting.options.beta = beta;
  setting.options.importance_sampling_level = level;
  setting.options.cpo_alpha = 0.0;
  if (type == "exo_pair") setting.options.label_smoothing = 0.1;
  const char* head = rows == "scored pairs" ? "score" : rows == "values" ? "value" : "lm";
  return {type + " " + level, head, rlhf::make_loss(rows, type, setting), {}};
}

// Every loss of the list whose definition does not name the micro-batch: aot sorts its pairs, the likelihood of the
// chosen answers (in sft, orpo, and the cpo's with cpo_alpha) is a mean over it.
std::vector<Case> cases() {
  const std::set<std::string> of_the_micro_batch = {"aot", "aot_unpaired", "sft", "orpo"};
  std::vector<Case> all = {case_of("rollouts", "grpo", 0.0, "sequence")};
  for (const char* rows : {"completions", "scored pairs", "pairs", "rollouts", "values"})
    for (const std::string& type : rlhf::loss_types(rows))
      if (!of_the_micro_batch.contains(type)) all.push_back(case_of(rows, type, 0.04));
  return all;
}

class Invariance : public testing::Test {
 protected:
  void SetUp() override { write_small_model(scratch_.path()); }
  Scratch scratch_{"invariance"};
};

TEST_F(Invariance, MicroBatchesOrderAndThreadsDoNotChangeLossAndGradients) {
  struct Way {
    const char* name;
    bool turned;
    int64_t micro_batch_tokens;
    int threads;
  };
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c);
    for (const Way& way : {Way{"a row or pair at a time", false, 1, 1}, Way{"micro-batches of 40", false, 40, 1},
                           Way{"reversed", true, 100000, 1}, Way{"reversed, of 25, two threads", true, 25, 2}}) {
      SmallLearner small(scratch_.path(), c.head, way.micro_batch_tokens, way.threads);
      const Batch rows = way.turned ? reversed(training_rows(kRows)) : training_rows(kRows);
      reference.expect_same(outcome_of(small, c, rows, reference.counts()), way.name);
    }
  }
}

// Each rank trains its share of the pairs, in micro-batches of its own.
std::vector<Outcome> ranks_outcomes(const fs::path& start, const Case& c, int ranks,
                                    const batch::GlobalCounts& counts) {
  const Batch all = training_rows(kRows);
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto group = comm::thread_group({.name = fmt::format("{}-{}", c.name, ranks), .rank = rank, .size = ranks});
      SmallLearner small(start, c.head, 30 + 10 * rank, 1, group.get());
      const int64_t pairs = kRows / 2;
      const Batch mine = all.slice(2 * (pairs * rank / ranks), 2 * (pairs * (rank + 1) / ranks));
      outcomes[static_cast<size_t>(rank)] = outcome_of(small, c, mine, counts);
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

TEST_F(Invariance, ThreadRanksDoNotChangeLossAndGradients) {
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c);
    for (int ranks : {2, 4}) {
      const std::vector<Outcome> outcomes = ranks_outcomes(scratch_.path(), c, ranks, reference.counts());
      reference.expect_same(outcomes[0], fmt::format("{} ranks", ranks));
      for (const Outcome& other : outcomes) {
        EXPECT_EQ(other.loss, outcomes[0].loss) << c.name;
        EXPECT_EQ(other.gradients, outcomes[0].gradients) << c.name << ": ranks must hold the same bits";
      }
    }
  }
}

// The rows behind a prompt of 12 more tokens: the same one in the first two pairs, others after that.
Batch with_long_prompts(const Batch& rows) {
  Batch out = rows;
  const auto put = [&](const auto& key, auto value_at) {
    using Value = decltype(value_at(int64_t{0}, size_t{0}));
    std::vector<std::vector<Value>> columns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      columns.emplace_back();
      for (size_t t = 0; t < 15; ++t) columns.back().push_back(value_at(r < 4 ? 0 : r / 2, t));
      const auto row = rows.row(key, r);
      columns.back().insert(columns.back().end(), row.begin() + 3, row.end());
    }
    out.set_ragged(key, columns);
  };
  put(batch::kIds, [](int64_t prompt, size_t t) { return static_cast<int32_t>(2 + 11 * uniform(7, prompt, t)); });
  put(batch::kTrainable, [](int64_t, size_t) { return uint8_t{0}; });
  for (const Key<float>& key :
       {batch::kLogProbs, batch::kReferenceLogProbs, batch::kAdvantages, batch::kValues, batch::kReturns})
    put(key, [](int64_t, size_t) { return 0.0F; });
  return out;
}

// Four rows of one prompt, packed once for all of them, in twos and each alone.
TEST_F(Invariance, APromptPackedOnceGivesWhatItsCopiesGive) {
  const Batch rows = with_long_prompts(training_rows(kRows));
  int64_t packed = 0;
  for (int64_t r = 0; r < kRows; ++r) packed += rows.length(batch::kIds.name, r);
  ASSERT_EQ(static_cast<int64_t>(train::pack_rows(rows).tokens.ids.size()), packed - 3 * 15);
  for (const Case& c : cases()) {
    const Reference reference(scratch_.path(), c, rows);
    for (const int64_t micro_batch_tokens : {1, 60}) {
      SmallLearner small(scratch_.path(), c.head, micro_batch_tokens);
      reference.expect_same(outcome_of(small, c, rows, reference.counts()),
                            fmt::format("micro-batches of {}", micro_batch_tokens));
    }
  }
}

// The rows filled up to the same length behind their end with tokens that are not trained.
Batch padded(const Batch& rows) {
  size_t longest = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) longest = std::max(longest, rows.row(batch::kIds, r).size());
  Batch out = rows;
  const auto fill = [&](const auto& key, auto padding) {
    std::vector<std::vector<decltype(padding)>> columns;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const auto row = rows.row(key, r);
      columns.emplace_back(row.begin(), row.end());
      columns.back().resize(longest, padding);
    }
    out.set_ragged(key, columns);
  };
  fill(batch::kIds, int32_t{0});
  fill(batch::kTrainable, uint8_t{0});
  for (const Key<float>& key :
       {batch::kLogProbs, batch::kReferenceLogProbs, batch::kAdvantages, batch::kValues, batch::kReturns})
    fill(key, 7.0F);
  return out;
}

// Packed without padding, whole and row by row, against padded rows. A score is of a row's last token, so that padding
// is another row there.
TEST_F(Invariance, PackingGivesWhatPaddingGives) {
  const Batch rows = padded(training_rows(kRows));
  ASSERT_EQ(rows.length(batch::kIds.name, 0), rows.length(batch::kIds.name, 1));
  for (const Case& c : cases()) {
    if (c.loss.needs.row_scores) continue;
    const Reference reference(scratch_.path(), c);
    SmallLearner together(scratch_.path(), c.head, 100000), apart(scratch_.path(), c.head, 1);
    reference.expect_same(outcome_of(together, c, rows, reference.counts()), "padded, in one micro-batch");
    reference.expect_same(outcome_of(apart, c, rows, reference.counts()), "padded, each alone");
  }
}

}  // namespace
}  // namespace collimate::test

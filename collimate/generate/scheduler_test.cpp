#include "collimate/generate/scheduler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "collimate/base/philox.h"

namespace collimate::generate {
namespace {

// Queues with sequences in them, and the smallest engine that follows a plan: it draws token 1 always.
class SchedulerTest : public testing::Test {
 protected:
  Sequence& wait(int64_t prompt_tokens, int64_t max_tokens = 100, int64_t prompt_uid = -1) {
    auto sequence = std::make_unique<Sequence>();
    sequence->uid = static_cast<int64_t>(all_.size());
    sequence->prompt_uid = prompt_uid >= 0 ? prompt_uid : 1000 + sequence->uid;
    sequence->ids.assign(prompt_tokens, static_cast<int32_t>(sequence->prompt_uid));
    sequence->prompt_tokens = prompt_tokens;
    sequence->params.max_tokens = max_tokens;
    sequence->max_length = prompt_tokens + max_tokens;
    queues_.waiting.push_back(sequence.get());
    all_.push_back(std::move(sequence));
    return *all_.back();
  }

  void make_pool(int64_t blocks, bool remember = true) {
    pool_ = std::make_unique<BlockPool>(blocks);
    prefixes_ = make_prefix_cache(remember, *pool_);
  }

  void preempt() {
    while (Sequence* victim = Scheduler::latest_to_preempt(queues_, *pool_)) {
      ASSERT_EQ(victim, queues_.running.back());
      queues_.running.pop_back();
      victim->drop_cache();
      queues_.waiting.push_front(victim);
      ++preemptions_;
    }
  }

  const StepPlan& plan(int64_t max_tokens, int64_t max_sequences, int64_t max_speculation_rows = 0) {
    Scheduler({max_tokens, max_sequences, max_speculation_rows}).plan(queues_, *pool_, *prefixes_, 1, plan_);
    return plan_;
  }

  void carry_out() {
    size_t match = 0;
    std::vector<Sequence*> started;
    for (const Admission& admission : plan_.admissions) {
      for (int64_t i = 0; i < admission.matched; ++i) {
        admission.sequence->blocks.push_back(pool_->acquire(plan_.matched_blocks[match++]));
      }
      admission.sequence->computed = admission.matched * kBlockTokens;
      started.push_back(admission.sequence);
    }
    for (const generate::Run& run : plan_.runs) grow(*run.sequence, run.proposed);
    for (const Fork& fork : plan_.forks) {
      const auto& leader = plan_.runs[fork.run].sequence->blocks;
      fork.sequence->blocks.assign(leader.begin(), leader.begin() + fork.sequence->prompt_tokens / kBlockTokens);
      grow(*fork.sequence);
      started.push_back(fork.sequence);
    }
    for (Sequence* sequence : started) {
      std::erase(queues_.waiting, sequence);
      queues_.running.push_back(sequence);
    }
    for (const generate::Run& run : plan_.runs) {
      run.sequence->computed += run.count;
      prefixes_->publish(1, *run.sequence);
      if (run.proposed > 0) run.sequence->trim_cache();
      if (run.draws) draw(*run.sequence);
    }
    for (const Fork& fork : plan_.forks) {
      fork.sequence->computed = fork.sequence->prompt_tokens;
      draw(*fork.sequence);
    }
  }

  void grow(Sequence& sequence, int64_t proposed = 0) {
    while (static_cast<int64_t>(sequence.blocks.size()) < blocks_for(sequence.length() + proposed)) {
      sequence.blocks.push_back(pool_->allocate());
    }
  }

  void draw(Sequence& sequence) {
    EXPECT_EQ(sequence.pending(), 0);
    sequence.ids.push_back(1);
    if (sequence.completion_tokens() < sequence.params.max_tokens) return;
    sequence.finish = Finish::kLength;
    sequence.drop_cache();
    std::erase(queues_.running, &sequence);
  }

  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> prefixes_;
  std::vector<std::unique_ptr<Sequence>> all_;  // after the pool: destroyed before it
  Queues queues_;
  StepPlan plan_;
  int64_t preemptions_ = 0;
};

TEST_F(SchedulerTest, LongPromptComesInChunksBesideDecodes) {
  make_pool(100);
  const Sequence& shorter = wait(3);
  const Sequence& longer = wait(50);
  plan(20, 8);
  ASSERT_EQ(plan_.runs.size(), 2U);
  EXPECT_EQ(plan_.runs[0].sequence, &shorter);
  EXPECT_TRUE(plan_.runs[0].draws);
  EXPECT_EQ(plan_.runs[1].count, 17);
  EXPECT_FALSE(plan_.runs[1].draws);
  carry_out();

  plan(20, 8);
  ASSERT_EQ(plan_.runs.size(), 2U);
  EXPECT_EQ(plan_.runs[0].sequence, &shorter);
  EXPECT_EQ(plan_.runs[0].count, 1);
  EXPECT_EQ(plan_.runs[1].sequence, &longer);
  EXPECT_EQ(plan_.runs[1].count, 19);
  carry_out();
  plan(20, 8);
  EXPECT_EQ(plan_.runs[1].count, 14);
  EXPECT_TRUE(plan_.runs[1].draws);
}

TEST_F(SchedulerTest, EqualQueuesGiveEqualPlansAndNothingChanges) {
  make_pool(30);
  for (int i = 0; i < 6; ++i) wait(20 + i, 100, i / 2);
  const auto text = [](const StepPlan& plan) {
    std::string out;
    for (const generate::Run& run : plan.runs)
      out += fmt::format("r{}:{}:{} ", run.sequence->uid, run.count, run.draws);
    for (const Fork& fork : plan.forks) out += fmt::format("f{}:{} ", fork.sequence->uid, fork.run);
    return out;
  };
  const std::string first = text(plan(64, 8));
  EXPECT_EQ(text(plan(64, 8)), first);
  EXPECT_EQ(pool_->used(), 0);
  EXPECT_EQ(queues_.waiting.size(), 6U);
}

TEST_F(SchedulerTest, SamplesOfOnePromptForkWhenItsLastChunkRuns) {
  make_pool(100);
  for (int i = 0; i < 4; ++i) wait(40, 100, 7);
  wait(5);
  plan(32, 8);
  EXPECT_EQ(plan_.runs.size(), 1U) << "the followers wait, and the budget is used up";
  EXPECT_TRUE(plan_.forks.empty());
  carry_out();
  plan(32, 8);
  ASSERT_EQ(plan_.forks.size(), 3U);
  EXPECT_EQ(plan_.forks[0].run, 0);
  EXPECT_EQ(plan_.runs.size(), 2U) << "the other prompt joins";
  carry_out();
  EXPECT_EQ(pool_->used(), 2 + 4 + 1) << "two full blocks shared by four, a partial one each, and the other prompt's";
  EXPECT_EQ(pool_->holders(all_[0]->blocks[1].id()), 4);
}

TEST_F(SchedulerTest, EqualPromptUidWithOtherTokensDoesNotFork) {
  make_pool(100);
  wait(10, 100, 7);
  wait(10, 100, 7).ids[3] = 5;
  plan(64, 8);
  EXPECT_TRUE(plan_.forks.empty());
  EXPECT_EQ(plan_.runs.size(), 2U);
}

TEST_F(SchedulerTest, AdmissionLeavesABlockPerRunningSequence) {
  make_pool(6);
  for (int i = 0; i < 4; ++i) wait(20);  // two blocks each
  plan(1000, 8);
  EXPECT_EQ(plan_.admissions.size(), 2U) << "2 + 2 of 6 blocks, and a third would leave no spare ones";
}

TEST_F(SchedulerTest, WhatEndsWithinItsBlocksNeedsNoSpareOne) {
  make_pool(3);
  for (int i = 0; i < 3; ++i) wait(4, 12);
  plan(100, 8);
  EXPECT_EQ(plan_.admissions.size(), 3U) << "16 tokens each, a block";
}

TEST_F(SchedulerTest, LatestIsPreemptedAndComesBackFirst) {
  make_pool(4, /*remember=*/false);
  wait(15, 40);
  wait(15, 40);
  plan(100, 8);
  carry_out();
  ASSERT_EQ(queues_.running.size(), 2U);
  wait(15, 40);
  while (preemptions_ == 0) {
    preempt();
    plan(100, 8);
    carry_out();
  }
  EXPECT_EQ(queues_.waiting.front()->uid, 1);
  EXPECT_EQ(queues_.waiting.front()->computed, 0);
  EXPECT_FALSE(queues_.waiting.front()->fresh());
}

TEST_F(SchedulerTest, ResumedSampleWaitsForTheSharedPromptAndFindsItsBlocks) {
  make_pool(100);
  for (int i = 0; i < 3; ++i) {
    Sequence& sequence = wait(40, 100, 7);
    sequence.ids.push_back(i);  // each has drawn once and lost its cache
  }
  EXPECT_EQ(plan(1000, 8).runs.size(), 1U);
  carry_out();
  plan(1000, 8);
  ASSERT_EQ(plan_.admissions.size(), 2U);
  EXPECT_EQ(plan_.admissions[0].matched, 2);
  EXPECT_EQ(plan_.runs.size(), 3U);
}

// How many proposed tokens go along with each run.
std::vector<int64_t> proposed_of(const StepPlan& plan) {
  std::vector<int64_t> proposed;
  for (const generate::Run& run : plan.runs) proposed.push_back(run.proposed);
  return proposed;
}

TEST_F(SchedulerTest, ProposedTokensFillTheRowsOfADecodingStep) {
  make_pool(100);
  for (int i = 0; i < 3; ++i) wait(4 + i);
  plan(100, 8, 16);
  EXPECT_EQ(proposed_of(plan_), (std::vector<int64_t>{0, 0, 0})) << "prompts propose nothing";
  carry_out();
  for (const auto& sequence : all_) sequence->speculation.proposed.assign(6, 1);
  EXPECT_EQ(proposed_of(plan(100, 8, 0)), (std::vector<int64_t>{0, 0, 0}));
  EXPECT_EQ(proposed_of(plan(100, 8, 16)), (std::vector<int64_t>{4, 4, 5}));
  EXPECT_EQ(proposed_of(plan(100, 8, 64)), (std::vector<int64_t>{6, 6, 6}));
  EXPECT_EQ(proposed_of(plan(5, 5, 64)), (std::vector<int64_t>{0, 1, 1})) << "the step's own limit";
  all_[0]->speculation.proposed.clear();
  EXPECT_EQ(proposed_of(plan(100, 8, 16)), (std::vector<int64_t>{0, 6, 6}));
  wait(13);
  EXPECT_EQ(proposed_of(plan(100, 8, 16)), (std::vector<int64_t>{0, 0, 0, 0})) << "the prompt has filled the step";
}

TEST_F(SchedulerTest, ProposedTokensTakeNoBlockThatIsASequencesNextOne) {
  make_pool(5);
  wait(14);
  wait(14);
  plan(100, 8);
  carry_out();
  for (const auto& sequence : all_) sequence->speculation.proposed.assign(20, 1);
  EXPECT_EQ(proposed_of(plan(100, 8, 64)), (std::vector<int64_t>{17, 1})) << "one of three free blocks is spare";
  const Block taken = pool_->allocate();
  EXPECT_EQ(proposed_of(plan(100, 8, 64)), (std::vector<int64_t>{1, 1})) << "two are free and kept";
  all_[1]->drop_cache();
  queues_.running.pop_back();
  EXPECT_EQ(proposed_of(plan(100, 8, 64)), (std::vector<int64_t>{20})) << "two more blocks, and one is kept";
}

// Whatever the limits: everything ends, no step exceeds them, and nothing leaks.
TEST_F(SchedulerTest, RandomLoadsEnd) {
  for (uint32_t trial = 0; trial < 200; ++trial) {
    all_.clear();
    queues_ = {};
    const auto random = [&](uint32_t what, uint64_t below) {
      return static_cast<int64_t>(base::random_bits(trial, 1, 2, what) % below);
    };
    make_pool(8 + random(0, 20), random(1, 2) == 0);
    const int64_t max_tokens = 1 + random(2, 60), max_sequences = 1 + random(3, 12), max_rows = random(4, 30);
    for (uint32_t i = 0; i < 12; ++i) wait(1 + random(10 + i, 60), 1 + random(40 + i, 60), random(70 + i, 5));
    for (int step = 0; !queues_.waiting.empty() || !queues_.running.empty(); ++step) {
      ASSERT_LT(step, 20000) << "trial " << trial;
      preempt();
      for (Sequence* sequence : queues_.running) sequence->speculation.proposed.assign((step + sequence->uid) % 20, 1);
      plan(max_tokens, max_sequences, max_rows);
      ASSERT_FALSE(plan_.empty());
      int64_t tokens = 0, proposed = 0;
      for (const generate::Run& run : plan_.runs) tokens += run.count, proposed += run.proposed;
      ASSERT_LE(tokens + proposed, std::max(tokens, std::min(max_tokens, max_rows)));
      carry_out();
      ASSERT_LE(static_cast<int64_t>(queues_.running.size()), max_sequences);
      for (const Sequence* sequence : queues_.running) {
        if (sequence->computed % kBlockTokens == 0 && sequence->pending() == 0) continue;
        const auto writes = static_cast<size_t>(sequence->computed / kBlockTokens);
        if (writes >= sequence->blocks.size()) continue;
        ASSERT_EQ(pool_->holders(sequence->blocks[writes].id()), 1);
      }
    }
    for (const auto& sequence : all_) EXPECT_EQ(sequence->completion_tokens(), sequence->params.max_tokens);
    EXPECT_EQ(pool_->used(), 0);
  }
}

}  // namespace
}  // namespace collimate::generate

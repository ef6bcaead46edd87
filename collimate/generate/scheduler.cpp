#include "collimate/generate/scheduler.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::generate {
namespace {

// Returns how many blocks a decoding sequence needs beyond those that it has.
int64_t growth(const Sequence& sequence) {
  return blocks_for(sequence.length()) - static_cast<int64_t>(sequence.blocks.size());
}

// Returns whether the sequence may still need a further block.
bool may_grow(const Sequence& sequence) {
  return blocks_for(sequence.length() + sequence.tokens_left()) > blocks_for(sequence.length());
}

int64_t decode_growth(const Queues& queues) {
  int64_t blocks = 0;
  for (const Sequence* sequence : queues.running) {
    if (sequence->decoding()) blocks += growth(*sequence);
  }
  return blocks;
}

bool same_prompt(const Sequence& a, const Sequence& b) {
  return a.prompt_uid == b.prompt_uid && a.prompt_tokens == b.prompt_tokens &&
         std::equal(a.ids.begin(), a.ids.begin() + a.prompt_tokens, b.ids.begin());
}

// One call of Scheduler::plan: the plan so far, and the tokens, sequences and blocks that the step has left.
class Planner {
 public:
  Planner(const Queues& queues, const BlockPool& pool, const PrefixCache& prefixes, uint64_t version,
          const ScheduleLimits& limits, StepPlan& plan)
      : queues_(queues), pool_(pool), prefixes_(prefixes), version_(version), plan_(plan) {
    const auto running = static_cast<int64_t>(queues.running.size());
    reserve_ =
        std::count_if(queues.running.begin(), queues.running.end(), [](const Sequence* s) { return may_grow(*s); });
    tokens_ = limits.max_batch_tokens;
    sequences_ = std::min(limits.max_batch_sequences, limits.max_batch_tokens) - running;
    blocks_ = pool.free() - decode_growth(queues);
  }

  void plan_running() {
    for (Sequence* sequence : queues_.running) {
      if (sequence->decoding()) add_run(sequence, sequence->computed);
    }
    first_prompt_ = plan_.runs.size();
    for (Sequence* sequence : queues_.running) {
      if (tokens_ == 0) return;
      if (!sequence->decoding()) add_run(sequence, sequence->computed);
    }
  }

  // Adds proposed tokens to decoding runs, up to max_rows rows in the step, as evenly as whole rows allow.
  void plan_proposed(int64_t max_rows) {
    int64_t room = max_rows, proposing = 0;
    for (const Run& run : plan_.runs) room -= run.count;
    room = std::min(room, tokens_);
    for (size_t i = 0; i < first_prompt_; ++i) proposing += !plan_.runs[i].sequence->speculation.proposed.empty();
    for (size_t i = 0; i < first_prompt_ && room > 0; ++i) {
      Run& run = plan_.runs[i];
      const auto wanted = static_cast<int64_t>(run.sequence->speculation.proposed.size());
      if (wanted == 0) continue;
      run.proposed = take_proposed(*run.sequence, std::min(wanted, room / proposing));
      room -= run.proposed;
      --proposing;
    }
  }

  void plan_waiting() {
    // A step can start no more sequences than this, so it looks at no more.
    const size_t window = std::min<size_t>(queues_.waiting.size(), std::max<int64_t>(sequences_, 0));
    for (size_t i = 0; i < window && sequences_ > 0; ++i) {
      Sequence* sequence = queues_.waiting[i];
      const int32_t leader = run_of_prompt(*sequence);
      if (leader >= 0 && join(sequence, leader)) continue;
      if (tokens_ == 0) continue;  // later ones may still join a prompt
      if (!admit(sequence)) return;
    }
  }

 private:
  void add_run(Sequence* sequence, int64_t first) {
    const int64_t pending = sequence->length() - first;
    const int64_t count = std::min(pending, tokens_);
    plan_.runs.push_back({sequence, first, count, count == pending});
    tokens_ -= count;
  }

  // Returns the index of the run of this plan that computes the sequence's prompt, or -1.
  int32_t run_of_prompt(const Sequence& sequence) const {
    for (size_t i = first_prompt_; i < plan_.runs.size(); ++i) {
      const Run& run = plan_.runs[i];
      if (run.first < sequence.prompt_tokens && same_prompt(*run.sequence, sequence)) return static_cast<int32_t>(i);
    }
    return -1;
  }

  // Returns true if the sequence shares the leader's prompt: now as a fork, or later, as it waits for the prompt's last
  // chunk or for its blocks to be published.
  bool join(Sequence* sequence, int32_t leader) {
    const Run& run = plan_.runs[leader];
    if (!sequence->fresh() || !run.sequence->fresh()) {
      return prefixes_.remembers() && run.first < sequence->prompt_tokens / kBlockTokens * kBlockTokens;
    }
    const int64_t copies = sequence->prompt_tokens % kBlockTokens == 0 ? 0 : 1;
    if (run.draws && take(*sequence, copies)) plan_.forks.push_back({sequence, leader});
    return true;
  }

  bool admit(Sequence* sequence) {
    const size_t first_match = plan_.matched_blocks.size();
    const int64_t matched = prefixes_.match(version_, sequence->ids, plan_.matched_blocks);
    int64_t needed = blocks_for(sequence->length()) - matched;
    for (size_t m = first_match; m < plan_.matched_blocks.size(); ++m) {
      if (pool_.holders(plan_.matched_blocks[m]) == 0) ++needed;
    }
    if (!take(*sequence, needed)) {
      plan_.matched_blocks.resize(first_match);
      return false;
    }
    plan_.admissions.push_back({sequence, matched});
    add_run(sequence, matched * kBlockTokens);
    return true;
  }

  // Takes `blocks` and a place for one more running sequence, or takes nothing and returns false. The reserve of
  // running sequences must be left; the sequence itself needs none, so that one alone may fill the cache.
  bool take(const Sequence& sequence, int64_t blocks) {
    if (blocks + reserve_ > blocks_) return false;
    blocks_ -= blocks;
    --sequences_;
    if (may_grow(sequence)) ++reserve_;
    return true;
  }

  // Takes blocks for `tokens` proposed tokens, or for as many as the spare blocks hold, and returns their number.
  int64_t take_proposed(const Sequence& sequence, int64_t tokens) {
    const int64_t length = sequence.length(), blocks = blocks_for(length);
    const int64_t spare = std::max<int64_t>(0, blocks_ - reserve_);
    const int64_t taken = std::min(tokens, (blocks + spare) * kBlockTokens - length);
    blocks_ -= blocks_for(length + taken) - blocks;
    return taken;
  }

  const Queues& queues_;
  const BlockPool& pool_;
  const PrefixCache& prefixes_;
  uint64_t version_;
  StepPlan& plan_;
  int64_t tokens_ = 0;
  int64_t sequences_ = 0;
  int64_t blocks_ = 0;
  int64_t reserve_ = 0;  // blocks that admissions must leave: the next one of each running sequence that may grow
  size_t first_prompt_ = 0;
};

}  // namespace

void StepPlan::clear() {
  runs.clear();
  admissions.clear();
  matched_blocks.clear();
  forks.clear();
}

Sequence* Scheduler::latest_to_preempt(const Queues& queues, const BlockPool& pool) {
  const int64_t needed = decode_growth(queues);
  if (needed <= pool.free()) return nullptr;
  COLLIMATE_CHECK(queues.running.size() > 1, "a request needs {} blocks more than the {} of the cache", needed,
                  pool.size());
  return queues.running.back();
}

void Scheduler::plan(const Queues& queues, const BlockPool& pool, const PrefixCache& prefixes, uint64_t version,
                     StepPlan& plan) const {
  plan.clear();
  Planner planner(queues, pool, prefixes, version, limits_, plan);
  planner.plan_running();
  planner.plan_waiting();
  planner.plan_proposed(limits_.max_speculation_rows);
}

}  // namespace collimate::generate

#pragma once

#include <cstdint>
#include <vector>

#include "collimate/generate/block_pool.h"
#include "collimate/generate/prefix_cache.h"
#include "collimate/generate/sequence.h"

namespace collimate::generate {

// The part of a sequence that goes through the model in a step: tokens [first, first + count), then the first
// `proposed` tokens of its speculation. A token is drawn after each of these too, as long as the draws equal the
// proposed tokens.
struct Run {
  Sequence* sequence = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  bool draws = false;    // the run has the last pending tokens, after which a token is drawn
  int64_t proposed = 0;  // 0 unless the run decodes
};

// A waiting sequence that starts now. Its first `matched` blocks come from the prefix cache.
struct Admission {
  Sequence* sequence = nullptr;
  int64_t matched = 0;
};

// A waiting sequence whose prompt is completed by the run with index `run`, of another sequence. It shares that one's
// full blocks, copies the partial last one and draws from the same hidden state.
struct Fork {
  Sequence* sequence = nullptr;
  int32_t run = 0;
};

// All that one step does, decided before any of it is done. Reused from step to step.
struct StepPlan {
  std::vector<Run> runs;
  std::vector<Admission> admissions;
  std::vector<int32_t> matched_blocks;  // ids for all admissions, one after the other
  std::vector<Fork> forks;

  void clear();
  bool empty() const { return runs.empty(); }
};

struct ScheduleLimits {
  int64_t max_batch_tokens = 0;
  int64_t max_batch_sequences = 0;  // never more than max_batch_tokens, so that every running sequence can decode
  // Proposed tokens fill a step up to so many rows. Up to there a further row costs little, as the step's time goes
  // into reading the weights. Beyond that, and in a step with a prompt, a row costs its full share, and guesses are too
  // often wrong for that.
  int64_t max_speculation_rows = 0;
};

// Decides what the next step does, by two pure functions of queues, pool and prefix cache. Service carries out their
// results: first latest_to_preempt() until it returns null, then plan().
//
// The order of service is: every decoding sequence; then prompts in progress; then waiting sequences in order of
// arrival, each only when its whole prompt fits beside one spare block for each running sequence that may grow. A
// sequence whose prompt is being computed for another one waits for that, unless it can share nothing. Proposed tokens
// come last, with the tokens, rows and blocks that are left.
class Scheduler {
 public:
  explicit Scheduler(ScheduleLimits limits) : limits_(limits) {}

  // Returns the running sequence that came last if the decoding ones need more blocks than are free, else null.
  static Sequence* latest_to_preempt(const Queues& queues, const BlockPool& pool);

  // Overwrites `plan`, which is empty only if no sequence is running or waiting.
  void plan(const Queues& queues, const BlockPool& pool, const PrefixCache& prefixes, uint64_t version,
            StepPlan& plan) const;

 private:
  ScheduleLimits limits_;
};

}  // namespace collimate::generate

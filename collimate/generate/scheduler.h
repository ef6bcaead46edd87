#pragma once

#include <cstdint>
#include <vector>

#include "collimate/generate/block_pool.h"
#include "collimate/generate/prefix_cache.h"
#include "collimate/generate/sequence.h"

namespace collimate::generate {

// Tokens [first, first + count) of one sequence go through the model, and after them the first `proposed` tokens of its
// speculation: a token is drawn after each of those too, as long as the draws are what was proposed.
struct Run {
  Sequence* sequence = nullptr;
  int64_t first = 0;
  int64_t count = 0;
  bool draws = false;    // these are its last pending tokens: a token is drawn after them
  int64_t proposed = 0;  // only of a run that decodes
};

// A waiting sequence that starts now, with `matched` blocks of the prefix cache as its beginning.
struct Admission {
  Sequence* sequence = nullptr;
  int64_t matched = 0;
};

// A waiting sequence whose prompt is the one that run `run` completes: it takes over the blocks, copies the partial
// last one and draws from the same hidden state.
struct Fork {
  Sequence* sequence = nullptr;
  int32_t run = 0;
};

// Everything one step does, decided before any of it is done. Reused from step to step.
struct StepPlan {
  std::vector<Run> runs;
  std::vector<Admission> admissions;
  std::vector<int32_t> matched_blocks;  // of the admissions, one after the other
  std::vector<Fork> forks;

  void clear();
  bool empty() const { return runs.empty(); }
};

struct ScheduleLimits {
  int64_t max_batch_tokens = 0;
  int64_t max_batch_sequences = 0;  // never more than max_batch_tokens, so that every running sequence can decode
  // Proposed tokens fill a step up to so many rows: that far a row more costs a small part of the step, whose time goes
  // into reading the weights. Beyond, and in a step with a prompt, it costs its share, and guesses are too often wrong.
  int64_t max_speculation_rows = 0;
};

// Decides what the next step does. Two pure functions of queues, pool and prefix cache; Service carries them out:
// first latest_to_preempt() until it returns null, then plan().
//
// Order of service: every decoding sequence; then prompts in progress; then waiting ones in order of arrival, each only
// when its whole prompt fits beside one spare block per running sequence. A sequence whose prompt is being computed for
// another one waits for that, unless it can share nothing. Last come proposed tokens, with what is left of everything.
class Scheduler {
 public:
  explicit Scheduler(ScheduleLimits limits) : limits_(limits) {}

  // The running sequence that came last, when the decoding ones need more blocks than are free; else null.
  static Sequence* latest_to_preempt(const Queues& queues, const BlockPool& pool);

  // Overwrites `plan`. Empty only when nothing is running or waiting.
  void plan(const Queues& queues, const BlockPool& pool, const PrefixCache& prefixes, uint64_t version,
            StepPlan& plan) const;

 private:
  ScheduleLimits limits_;
};

}  // namespace collimate::generate

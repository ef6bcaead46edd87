#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "collimate/generate/block_pool.h"
#include "collimate/generate/runner.h"
#include "collimate/generate/scheduler.h"
#include "collimate/generate/sequence.h"

namespace collimate::generate {

struct DraftLimits {
  tensor::KvType kv_type = tensor::KvType::kFloat32;  // of its cache
  int64_t blocks = 0;                                 // of the cache; sequences for which there are none do not guess
  int64_t batch_tokens = 0;                           // of one forward pass
  int64_t vocabulary = 0;                             // of the model that draws: a guess beyond it ends the guesses
};

// A sequence that guesses up to `most` > 0 tokens in this step.
struct Guess {
  Sequence* sequence = nullptr;
  int64_t most = 0;
};

// Guesses with a smaller model of the same tokens, padded perhaps to another number (speculative decoding: Leviathan et
// al. 2023). It draws as the model itself does: with the sequence's parameters and history, and with the random number
// that belongs to the sequence and the position. Both inverse CDFs then read the same number, so that a guess holds
// wherever the two distributions put that number into the same token. It keeps a cache of its own of the sequences that
// guessed; which ones decides the time a guess takes, never what it is. Not thread-safe.
class Draft {
 public:
  // `model` outlives it. `run_seed`: the service's.
  Draft(model::Model& model, tensor::Exec exec, DraftLimits limits, uint64_t run_seed);

  // Overwrites each sequence's speculation.proposed; it stays empty for one that is beyond the draft's positions, has a
  // token that the draft lacks, or finds no blocks.
  void propose(std::span<const Guess> guesses);
  // The sequence has ended.
  void forget(int64_t uid) { shadows_.erase(uid); }
  void clear() { shadows_.clear(); }
  // As Runner::release.
  void release() {
    clear();
    runner_.release();
  }

 private:
  // A sequence as the draft has run it: the ids that were drawn, then its own guesses.
  struct Shadow {
    Sequence sequence;
    Sequence* original = nullptr;  // in this step; null: it does not guess
    int64_t left = 0;              // tokens to guess yet
  };

  bool can_follow(const Sequence& original) const;
  void follow(const Guess& guess);
  void make_room();
  bool plan_next();

  model::Model& model_;
  DraftLimits limits_;
  BlockPool pool_;  // before the shadows, which hold its blocks
  Runner runner_;
  std::unordered_map<int64_t, Shadow> shadows_;  // by uid
  std::vector<Shadow*> guessing_;                // in this step
  StepPlan plan_;
};

}  // namespace collimate::generate

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
  tensor::KvType kv_type = tensor::KvType::kFloat32;  // of the draft's cache
  int64_t blocks = 0;                                 // of that cache; sequences that find none free do not guess
  int64_t batch_tokens = 0;                           // most tokens of one forward pass
  int64_t vocabulary = 0;                             // of the model that draws; guesses end before an id beyond it
};

// A sequence that guesses up to `most` > 0 tokens in this step.
struct Guess {
  Sequence* sequence = nullptr;
  int64_t most = 0;
};

// Guesses with a smaller model that has the same tokens, though its vocabulary may be padded to another size
// (speculative decoding: Leviathan et al. 2023). The draft draws as the model itself does: with the sequence's
// parameters and history, and with the random number that belongs to the sequence and the position. Both inverse CDFs
// read the same number, so a guess holds wherever the two distributions map that number to the same token. The draft
// keeps its own cache of sequences that guessed; the cache changes how long a guess takes, never the guess. Not
// thread-safe.
class Draft {
 public:
  // `model` must outlive the draft. `run_seed` is the service's.
  Draft(model::Model& model, tensor::Exec exec, DraftLimits limits, uint64_t run_seed);

  // Overwrites each sequence's speculation.proposed. The guess is empty for a sequence that is longer than the draft's
  // positions, has a token that the draft lacks, or finds no free blocks.
  void propose(std::span<const Guess> guesses);
  // Drops what is kept of a sequence that has ended.
  void forget(int64_t uid) { shadows_.erase(uid); }
  void clear() { shadows_.clear(); }
  // Gives back the memory of the cache and of results, as Runner::release; the next guess takes it again.
  void release() {
    clear();
    runner_.release();
  }

 private:
  // The draft's copy of a sequence: the ids that were drawn, then the draft's guesses.
  struct Shadow {
    Sequence sequence;
    Sequence* original = nullptr;  // the sequence that guesses in this step; null: it does not guess
    int64_t left = 0;              // tokens yet to guess
  };

  bool can_follow(const Sequence& original) const;
  void follow(const Guess& guess);
  void make_room();
  bool plan_next();

  model::Model& model_;
  DraftLimits limits_;
  BlockPool pool_;  // declared before the shadows, which hold its blocks
  Runner runner_;
  std::unordered_map<int64_t, Shadow> shadows_;  // by uid
  std::vector<Shadow*> guessing_;                // in this step
  StepPlan plan_;
};

}  // namespace collimate::generate

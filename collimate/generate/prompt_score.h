#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/model.h"

namespace collimate::generate {

// These log-probs are of a prompt's tokens.
struct PromptLogProbs {
  std::vector<float> log_probs;             // [L] of each token after those before it; the first is 0
  std::vector<TokenLogProb> top_log_probs;  // [L, k] the most likely tokens in each one's place; of the first, zeros
};

// Scores one given sequence in pieces of bounded work, between which the model may do other things. It runs the kernels
// of generation over a cache of its own, so that the bits are those of scoring the whole, whatever the pieces. The
// weights must stay as they are. Not thread-safe.
class PromptScore {
 public:
  // `temperature` 0 counts as 1; `top_count`: k, in [0, kMostTopLogProbs], the vocabulary at most. Keeps a reference to
  // the model. InputError: no token, an id outside the vocabulary, more tokens than the model has positions.
  PromptScore(model::Model& model, std::span<const int32_t> ids, double temperature, int64_t top_count = 0);

  // Runs the next tokens, at most so many; true once everything is there. Of several ranks all call it alike.
  bool advance(int64_t tokens);
  // Complete after advance() was true; of several stages the last one has them.
  const PromptLogProbs& log_probs() const { return scored_; }

 private:
  // The last token is not run: nothing follows it.
  int64_t to_run() const { return static_cast<int64_t>(ids_.size()) - 1; }
  void keep(const model::LogProbResult& result);

  model::Model& model_;
  const std::vector<int32_t> ids_;
  const float temperature_;
  const int64_t top_count_;
  std::unique_ptr<model::KvCache> cache_;
  std::vector<int32_t> table_;  // the cache's blocks, in order
  int64_t done_ = 0;            // tokens run
  PromptLogProbs scored_;
};

}  // namespace collimate::generate

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/model.h"

namespace collimate::generate {

// The log-probs of a prompt's tokens.
struct PromptLogProbs {
  std::vector<float> log_probs;             // [L] of each token, given the ones before it; the first is 0
  std::vector<TokenLogProb> top_log_probs;  // [L, k] the most likely tokens at each place; zeros at the first
};

// Scores one given sequence in pieces of bounded work, between which the model may do other things. It runs the kernels
// of generation over its own cache, so that the results have the same bits as if the whole were scored at once. The
// weights must not change meanwhile. Not thread-safe.
class PromptScore {
 public:
  // A `temperature` of 0 counts as 1. `top_count`, in [0, kMostTopLogProbs], is k, but at most the vocabulary. Keeps a
  // reference to the model. Throws InputError for no token, an id outside the vocabulary, and more tokens than the
  // model has positions.
  PromptScore(model::Model& model, std::span<const int32_t> ids, double temperature, int64_t top_count = 0);

  // Runs the next tokens, at most `tokens` of them, and returns whether all are done. If the model has several ranks,
  // all must make the same calls.
  bool advance(int64_t tokens);
  // Returns the log-probs, which are complete once advance() has returned true. Only the last pipeline stage has them.
  const PromptLogProbs& log_probs() const { return scored_; }

 private:
  // The last token is not run, as nothing follows it.
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

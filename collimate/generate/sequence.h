#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fields.h"
#include "collimate/generate/block_pool.h"
#include "collimate/generate/completion_text.h"
#include "collimate/generate/sampler_stages.h"
#include "collimate/generate/service.h"
#include "collimate/generate/speculation.h"
#include "collimate/model/kv_cache.h"
#include "collimate/tensor/ops/attention_window.h"

namespace collimate::generate {

constexpr int64_t kBlockTokens = model::KvCache::kBlockTokens;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Returns the number of blocks that hold `tokens` tokens.
inline int64_t blocks_for(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// One request in progress, as plain data. The parts of the service (scheduler, runner, prefix cache …) agree on the
// meaning of the fields, and each part changes only its own.
struct Sequence {
  // The request.
  int64_t uid = 0;
  int64_t prompt_uid = 0;
  SamplingParams params;
  int64_t prompt_tokens = 0;
  int64_t max_length = 0;   // most tokens of prompt and completion together
  double ends_at = kNever;  // on the service's clock, in seconds

  // The results so far.
  std::vector<int32_t> ids;                 // [length] prompt, then completion
  std::vector<float> log_probs;             // [completion]
  std::vector<int64_t> versions;            // [completion] version of the weights that sampled each token
  std::vector<TokenLogProb> top_log_probs;  // [completion, params.top_log_probs], most likely first
  model::RoutedExperts routed_experts;      // of computed tokens from the first on, collected since the last admission
  Finish finish = Finish::kRunning;
  int64_t emitted = 0;   // tokens of the completion already taken
  bool changed = false;  // is in the list of sequences that the next take() emits

  // The members below follow from those above: see follow_from_start.
  LogitHistory history;
  std::optional<CompletionText> text;  // set if the request has stop strings
  Speculation speculation;             // catches up with `ids` when it is asked

  // The sequence's place in the cache. Keys and values of ids[0, computed) lie in `blocks`, in order; the first
  // `released` blocks are given back, as no later token will read them. A block that this sequence will still write to
  // has no other holder.
  std::vector<Block> blocks;
  int64_t computed = 0;
  int64_t released = 0;
  int64_t published = 0;   // leading blocks that the prefix cache has seen
  uint64_t chain_key = 0;  // key of the last one of these

  // Lists the fields that a saved service has as JSON; the arrays of all sequences are in entries of their own.
  static void fields(auto& self, auto&& field) {
    field("uid", self.uid);
    field("prompt_uid", self.prompt_uid);
    field("sampling", self.params);
    field("prompt_tokens", self.prompt_tokens);
    field("emitted", self.emitted);
    field("finish", self.finish);
  }

  // Makes the sequence ready for another request; its arrays keep their memory.
  void reset() {
    drop_cache();
    ids.clear();
    log_probs.clear();
    versions.clear();
    top_log_probs.clear();
    routed_experts.clear();
    finish = Finish::kRunning;
    ends_at = kNever;
    emitted = 0;
    changed = false;
    text.reset();
    history.constraint.reset();
    speculation.reset();
  }

  // Rebuilds `history` and `text` from `ids`. The tokenizer is needed only if there are stop strings.
  void follow_from_start(std::span<const int32_t> eos_ids, const text::Tokenizer* tokenizer);
  void append(int32_t token, float log_prob, int64_t version, std::span<const TokenLogProb> top = {});

  int64_t length() const { return static_cast<int64_t>(ids.size()); }
  int64_t completion_tokens() const { return length() - prompt_tokens; }
  int64_t pending() const { return length() - computed; }  // tokens to run before the next draw
  bool fresh() const { return completion_tokens() == 0; }
  // Returns how many more tokens are drawn if nothing ends the sequence before; at least 1 while it runs.
  int64_t tokens_left() const { return std::min(params.max_tokens - completion_tokens(), max_length - length()); }
  // Returns whether the newest token is drawn and the only one that is missing from the cache.
  bool decoding() const { return pending() == 1 && !fresh(); }

  // Gives back the blocks behind the computed tokens, which held proposed tokens that were not drawn.
  void trim_cache() {
    while (static_cast<int64_t>(blocks.size()) > blocks_for(computed)) blocks.pop_back();
  }

  // Gives back the blocks that no later token reads, as they lie before its attention window. With window 0 all blocks
  // are read.
  void release_behind(int64_t window) {
    const int64_t read = tensor::first_block_read(computed, window);
    for (; released < read; ++released) base::at(blocks, released).release();
  }

  // Gives all blocks back, the last one first, so that the prefix cache remembers beginnings longest. Everything will
  // be recomputed.
  void drop_cache() {
    while (!blocks.empty()) blocks.pop_back();
    computed = 0;
    released = 0;
    published = 0;
    chain_key = 0;
  }
};

// Returns why a sequence ends with its newest token, which must be of the completion, or kRunning if it does not end.
// The first of several reasons counts, in the order of Finish.
Finish finish_of(const Sequence& sequence, std::span<const int32_t> eos_ids);

// The sequences that have not ended.
struct Queues {
  std::vector<Sequence*> running;  // in order of admission; they have blocks
  std::deque<Sequence*> waiting;   // preempted ones first, then in order of arrival; they have no blocks
};

}  // namespace collimate::generate

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

// Blocks that hold `tokens` tokens.
inline int64_t blocks_for(int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }

// One request on its way. Plain data; rooms agree on what the fields mean and each changes its own.
struct Sequence {
  // The request.
  int64_t uid = 0;
  int64_t prompt_uid = 0;
  SamplingParams params;
  int64_t prompt_tokens = 0;
  int64_t max_length = 0;   // prompt and completion at most
  double ends_at = kNever;  // on the service's clock, in seconds

  // The sequence has this so far.
  std::vector<int32_t> ids;                 // [length] prompt, then completion
  std::vector<float> log_probs;             // [completion]
  std::vector<int64_t> versions;            // [completion] weights that sampled each token
  std::vector<TokenLogProb> top_log_probs;  // [completion, params.top_log_probs], most likely first
  model::RoutedExperts routed_experts;      // of the first tokens that were computed since it was last admitted
  Finish finish = Finish::kRunning;
  int64_t emitted = 0;   // tokens of the completion already taken
  bool changed = false;  // waits in the list of what the next take() emits

  // The members below follow from those above: see follow_from_start.
  LogitHistory history;
  std::optional<CompletionText> text;  // where the request has stop strings
  Speculation speculation;             // catches up with `ids` when it is asked

  // The sequence's place in the cache: keys and values of ids[0, computed) lie in `blocks`, in order, of which the
  // first `released` are given back, as no token will read them. A block that this sequence still writes to has no
  // other holder.
  std::vector<Block> blocks;
  int64_t computed = 0;
  int64_t released = 0;
  int64_t published = 0;   // leading blocks that the prefix cache has seen
  uint64_t chain_key = 0;  // key of the last of them

  // Lists what a saved service has of it as JSON; the arrays follow each other in entries of their own.
  static void fields(auto& self, auto&& field) {
    field("uid", self.uid);
    field("prompt_uid", self.prompt_uid);
    field("sampling", self.params);
    field("prompt_tokens", self.prompt_tokens);
    field("emitted", self.emitted);
    field("finish", self.finish);
  }

  // Ready for another request; keeps the memory of its arrays.
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

  // Makes `history` and `text` what they are after `ids`. The tokenizer is needed for stop strings only.
  void follow_from_start(std::span<const int32_t> eos_ids, const text::Tokenizer* tokenizer);
  void append(int32_t token, float log_prob, int64_t version, std::span<const TokenLogProb> top = {});

  int64_t length() const { return static_cast<int64_t>(ids.size()); }
  int64_t completion_tokens() const { return length() - prompt_tokens; }
  int64_t pending() const { return length() - computed; }  // tokens to run before the next draw
  bool fresh() const { return completion_tokens() == 0; }
  // Tokens that it draws yet, should nothing end it before; at least 1 while it runs.
  int64_t tokens_left() const { return std::min(params.max_tokens - completion_tokens(), max_length - length()); }
  // Exactly its newest token is missing from the cache.
  bool decoding() const { return pending() == 1 && !fresh(); }

  // Gives back the blocks behind the computed tokens: they held proposed tokens that were not drawn.
  void trim_cache() {
    while (static_cast<int64_t>(blocks.size()) > blocks_for(computed)) blocks.pop_back();
  }

  // Gives back the blocks that lie behind the window of every token to come; window 0: none do.
  void release_behind(int64_t window) {
    const int64_t read = tensor::first_block_read(computed, window);
    for (; released < read; ++released) base::at(blocks, released).release();
  }

  // Gives the blocks back, last one first, so that beginnings are remembered longest; everything will be recomputed.
  void drop_cache() {
    while (!blocks.empty()) blocks.pop_back();
    computed = 0;
    released = 0;
    published = 0;
    chain_key = 0;
  }
};

// Why a sequence that has a completion ends with its newest token, or kRunning: the first reason in the order of
// Finish.
Finish finish_of(const Sequence& sequence, std::span<const int32_t> eos_ids);

// Running: in order of admission, with blocks. Waiting: preempted ones, then in order of arrival, all without blocks.
struct Queues {
  std::vector<Sequence*> running;
  std::deque<Sequence*> waiting;
};

}  // namespace collimate::generate

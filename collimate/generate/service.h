#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/generate/sampling.h"
#include "collimate/model/model.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/kv_type.h"
#include "collimate/text/tokenizer.h"

namespace collimate::generate {

// kError: no token can continue what the completion has to be (SamplingParams::regex), or finding them took too much.
enum class Finish : int32_t {
  kRunning = 0,
  kEos = 1,
  kStop = 2,
  kLength = 3,
  kCancelled = 4,
  kTimeout = 5,
  kError = 6
};

// The end as an interface says it: "length", "timeout", "error", else "stop".
const char* finish_reason(Finish finish);
// The completion ended before the model, or a stop, ended it: at its limit, by its timeout, an error, or cancelled.
bool cut_off(Finish finish);

// One request produced this since the last take(). The last emission of a request has finish != kRunning; the token
// that ended it (end of sequence, stop id, the one that completed a stop string) is among `tokens`. A caller that shows
// text takes it from completion_text.h, which cuts it before the stop string.
struct Emission {
  int64_t uid = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;   // log-softmax(logits / temperature) of each, before truncation and penalties
  std::vector<int64_t> versions;  // weights version that sampled each token
  // [tokens, k] the most likely tokens in each one's place, in order, under the same distribution as log_probs; k is
  // the request's top_log_probs, the vocabulary at most.
  std::vector<TokenLogProb> top_log_probs;
  // The last emission has it, where ServiceOptions::routed_experts asks: of the request's tokens from the first prompt
  // token on those that were run, which are all but the last one of a request that ended by itself.
  model::RoutedExperts routed_experts;
  Finish finish = Finish::kRunning;
};

struct ServiceOptions {
  int64_t cache_blocks = 0;  // 0: what `max_batch_sequences` full sequences need, or 4 GiB (of all stages) and one
  std::optional<tensor::KvType> kv_type;  // of the cache; empty: model::kv_type
  int64_t max_batch_tokens = 2048;        // tokens of one step, prefill included
  int64_t max_batch_sequences = 256;
  int64_t max_sequence_tokens = 0;  // 0: the model's
  uint64_t seed = 0;                // run seed of the draws
  std::vector<int32_t> eos_ids;     // empty: the model's; SamplingParams::ignore_eos switches them off for a request
  bool prefix_cache = true;         // requests whose beginnings are equal share full blocks, also after they finished
  int64_t speculation_tokens = 0;   // tokens proposed to a sequence at a time; 0: none. See step()
  model::Model* draft = nullptr;    // proposes them; outlives the service. Null: n-grams do, where they occurred before
  int64_t speculation_rows = 16;    // proposed tokens fill a step up to so many rows; tensor::linear's few rows
  bool routed_experts = false;      // tell which experts a mixture's routers chose
  SamplingParams sampling;          // of requests without a `sampling` column
  const text::Tokenizer* tokenizer = nullptr;  // outlives the service; needed for requests with stop strings or a form
  tensor::Exec exec;                           // threads of the draws; null pool: the caller's
  // Clock of SamplingParams::timeout_seconds, in seconds; empty: base::now_seconds. Read only while a request has a
  // timeout, so that what a run draws, which never has one, depends on no clock.
  std::function<double()> now_seconds = {};
};

// The options with every 0 that stands for a default replaced, for a model of that shape and type. InputError naming
// what is out of range, and a draft that is no language model.
ServiceOptions resolved(ServiceOptions options, const shape::ModelShape& shape, tensor::ComputeType compute);

// Gives the sizes of a draft's cache and steps by its shape and type: as many sequences as guess at a time.
// `options` are resolved.
ServiceOptions of_draft(const ServiceOptions& options, const shape::ModelShape& draft, tensor::ComputeType compute);

// Counted since the service began; saved and loaded with it.
struct ServiceCounts {
  // prefill_tokens: prompt (and recomputed) tokens run; shared_prompt_tokens: those taken from another request's
  // blocks. decoded_tokens: drawn tokens run, with speculation as many as without. proposed_tokens: tokens run on
  // trial; accepted_tokens: those of them that were drawn, each of which saved a step; they are among decoded_tokens.
  int64_t steps = 0, prefill_tokens = 0, shared_prompt_tokens = 0, decoded_tokens = 0, preemptions = 0;
  int64_t proposed_tokens = 0, accepted_tokens = 0;
  // rows: requests that a step ran, summed over steps. queued_steps: steps that left requests waiting; queued_rows: the
  // rows of those.
  int64_t rows = 0, queued_steps = 0, queued_rows = 0;

  static void fields(auto& self, auto&& field) {
    field("steps", self.steps, "steps");
    field("prefill_tokens", self.prefill_tokens, "prompt tokens computed");
    field("shared_prompt_tokens", self.shared_prompt_tokens, "prompt tokens found in the prefix cache");
    field("decoded_tokens", self.decoded_tokens, "decoding positions computed");
    field("proposed_tokens", self.proposed_tokens, "tokens guessed by speculation");
    field("accepted_tokens", self.accepted_tokens, "those of them that were drawn");
    field("preemptions", self.preemptions, "requests that had to be computed again");
    field("rows", self.rows, "requests that a step ran, summed over steps");
    field("queued_steps", self.queued_steps, "steps that left requests waiting");
    field("queued_rows", self.queued_rows, "requests that those steps ran");
  }
};

struct ServiceStats : ServiceCounts {
  int64_t slots = 0;                                                      // requests that a step can run
  int64_t parts = 1;                                                      // services that these are the counts of
  int64_t running = 0, waiting = 0;                                       // requests now
  int64_t blocks_used = 0, blocks_peak = 0, blocks = 0, cache_bytes = 0;  // of the cache: used, most used, all

  // The part of the slots that was taken while requests waited: what long tails cost begins when none waits any more.
  // 1 where none ever waited.
  double utilisation() const {
    return queued_steps == 0 ? 1.0
                             : static_cast<double>(queued_rows * parts) / static_cast<double>(queued_steps * slots);
  }
};

// Counts of all of these together.
ServiceStats total_of(std::span<const ServiceStats> parts);

// Whoever answers requests, step by step: a Service, or several of them that ranks have. A server and a chat know no
// more of it.
class Completer {
 public:
  virtual ~Completer() = default;
  virtual void submit(const Batch& requests) = 0;
  virtual bool step() = 0;
  virtual std::span<const Emission> take() = 0;
  virtual void cancel(std::span<const int64_t> uids) = 0;
  virtual ServiceStats stats() const = 0;
};

// A service streams: it is the one object that recipes, the command line, a server and evaluation drive. Not
// thread-safe; only `step` does work. A sample's tokens depend on its prompt, its sampling parameters, its uid and the
// weights alone: not on what else is in the batch, on the order of submission, on pauses, or on save and load in the
// middle. Only how many there are may depend on more: on the clock, for a request with a timeout.
class Service : public base::Stateful, public Completer {
 public:
  Service(model::Model& model, ServiceOptions options);
  ~Service() override;

  // Rows: uid, prompt_uid (rows that share it and the prompt share its blocks), ids = the prompt's tokens, and
  // optionally `sampling` (JSON of SamplingParams, else the options'). Also legal between steps. InputError: empty
  // prompt, id outside the vocabulary, prompt longer than the limit, more tokens than the cache can ever hold, uid
  // still in flight, sampling parameters out of range, stop strings, a regex or a schema without a tokenizer, one that
  // cannot be followed. All rows or none.
  void submit(const Batch& requests) override;

  // Runs one step (prefill and decode mixed). False when there was nothing to do or the service is paused. Requests
  // whose timeout has passed end first, with Finish::kTimeout: their blocks are free for this step. GuardError when the
  // weights changed and update() was not called, or when logits are not finite. With speculation a request may get
  // several tokens in one: a proposed token is accepted if it is the one that is drawn at its place anyway, so tokens,
  // log-probs and finish reasons are the same with and without it, in bits. Where the model's ranks share experts, all
  // step together, each its own requests or none, and it is false when none of them had anything to do.
  bool step() override;

  // One emission per request that has something new, in the order in which it first had; valid until the next take().
  std::span<const Emission> take() override;

  void pause();  // steps do nothing; requests keep their place
  void resume();
  // The weights changed: later tokens carry `version`; cached keys of older versions are recomputed. The caller's
  // numbers need not be the weights' own; until the first call they are.
  void update(uint64_t version);
  // Gives back the memory of the cache, of what steps keep and of a draft's; the next step takes it again. Requests in
  // flight keep their place and are computed again, which gives the same bits.
  void release();
  // Ends requests with Finish::kCancelled; tokens not yet taken are still emitted. Unknown uids are ignored.
  void cancel(std::span<const int64_t> uids) override;

  int64_t running() const;   // submitted and not finished
  uint64_t version() const;  // of the next token
  ServiceStats stats() const override;

  // Requests in flight with their tokens so far; the cache is rebuilt by recomputing, which gives the same bits.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  bool step_own();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::generate

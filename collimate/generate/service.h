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

// Says why a request ended. kStop: by a stop id or a stop string. kError: no token can continue the form that the
// completion must have (SamplingParams::regex), or finding one took too much work.
enum class Finish : int32_t {
  kRunning = 0,
  kEos = 1,
  kStop = 2,
  kLength = 3,
  kCancelled = 4,
  kTimeout = 5,
  kError = 6
};

// Returns the word that interfaces have for an end: "length", "timeout", "error", else "stop".
const char* finish_reason(Finish finish);
// Returns whether the completion was cut off before the model or a stop ended it: at its limit, by its timeout, by an
// error or because it was cancelled.
bool cut_off(Finish finish);

// The output of one request since the last take(). A request's last emission has finish != kRunning, and its `tokens`
// include the token that ended it (end of sequence, stop id, or the one that completed a stop string). A caller that
// shows text takes it from completion_text.h, which cuts it before the stop string.
struct Emission {
  int64_t uid = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;   // [tokens] log-softmax(logits / temperature), before truncation and penalties
  std::vector<int64_t> versions;  // [tokens] version of the weights that sampled each token
  // [tokens, k] the most likely tokens at each token's place, most likely first, under the same distribution as
  // log_probs; k is the request's top_log_probs, but at most the vocabulary.
  std::vector<TokenLogProb> top_log_probs;
  // Only in the last emission, and if ServiceOptions::routed_experts asks: the experts of the tokens that were run,
  // from the first prompt token on. A request that ended by itself ran all tokens but the last one.
  model::RoutedExperts routed_experts;
  Finish finish = Finish::kRunning;
};

struct ServiceOptions {
  // 0: as many as `max_batch_sequences` full sequences need, at most 4 GiB over all stages, but enough for one
  // sequence.
  int64_t cache_blocks = 0;
  std::optional<tensor::KvType> kv_type;  // of the cache; empty: model::kv_type
  int64_t max_batch_tokens = 2048;        // tokens of one step, prefill included
  int64_t max_batch_sequences = 256;
  int64_t max_sequence_tokens = 0;  // 0: the model's positions
  uint64_t seed = 0;                // run seed of the draws
  std::vector<int32_t> eos_ids;     // empty: the model's; SamplingParams::ignore_eos switches them off for a request
  bool prefix_cache = true;         // requests with equal beginnings share full blocks, also after they finished
  int64_t speculation_tokens = 0;   // most tokens proposed to a sequence at a time; 0: none. See step()
  model::Model* draft = nullptr;    // proposes them; must outlive the service. Null: n-grams of the sequence do
  int64_t speculation_rows = 16;    // proposed tokens fill a step up to so many rows; tensor::linear's few rows
  bool routed_experts = false;      // emissions have the experts that a mixture's routers chose
  SamplingParams sampling;          // of requests without a `sampling` column
  const text::Tokenizer* tokenizer = nullptr;  // must outlive the service; needed for stop strings and forms
  tensor::Exec exec;                           // threads of the draws; null pool: the caller's
  // Clock of SamplingParams::timeout_seconds, in seconds; empty: base::now_seconds. The clock is read only while a
  // request has a timeout, which no rollout has, so that a run's draws depend on no clock.
  std::function<double()> now_seconds = {};
};

// Returns the options with every 0 or empty value that stands for a default replaced, for a model of that shape and
// type. Throws InputError for a value out of range, naming it, and for a draft that is no language model.
ServiceOptions resolved(ServiceOptions options, const shape::ModelShape& shape, tensor::ComputeType compute);

// Returns the options with the sizes of a draft's cache and steps, by the draft's shape and type: for as many sequences
// as guess at a time. `options` must be resolved.
ServiceOptions of_draft(const ServiceOptions& options, const shape::ModelShape& draft, tensor::ComputeType compute);

// Counts since the service began. They are saved and loaded with it.
struct ServiceCounts {
  // prefill_tokens are the prompt (and recomputed) tokens that were run, shared_prompt_tokens the ones taken from
  // another request's blocks. decoded_tokens are the drawn tokens that were run, as many with speculation as without.
  // proposed_tokens were run on trial; accepted_tokens are the proposed tokens that were drawn, each of which saved a
  // step, and are among decoded_tokens.
  int64_t steps = 0, prefill_tokens = 0, shared_prompt_tokens = 0, decoded_tokens = 0, preemptions = 0;
  int64_t proposed_tokens = 0, accepted_tokens = 0;
  // rows are the requests that a step ran, summed over steps. queued_steps are the steps that left requests waiting,
  // queued_rows the rows of these steps.
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
  int64_t slots = 0;                                                      // most requests that a step can run
  int64_t parts = 1;                                                      // number of services that were counted
  int64_t running = 0, waiting = 0;                                       // requests now
  int64_t blocks_used = 0, blocks_peak = 0, blocks = 0, cache_bytes = 0;  // of the cache: used, most used, all

  // Returns the share of the slots that was taken while requests waited; the cost of long tails, which begins when no
  // request waits any more, does not count. Returns 1 if none ever waited.
  double utilisation() const {
    return queued_steps == 0 ? 1.0
                             : static_cast<double>(queued_rows * parts) / static_cast<double>(queued_steps * slots);
  }
};

// Returns the sums of the counts of several services.
ServiceStats total_of(std::span<const ServiceStats> parts);

// An object that answers requests, step by step: a Service, or several of them on several ranks. A server and a chat
// use this interface alone.
class Completer {
 public:
  virtual ~Completer() = default;
  virtual void submit(const Batch& requests) = 0;
  virtual bool step() = 0;
  virtual std::span<const Emission> take() = 0;
  virtual void cancel(std::span<const int64_t> uids) = 0;
  virtual ServiceStats stats() const = 0;
};

// So many of a request's last ids are tokens of its completion that were drawn before, as by an earlier service: it
// goes on behind them. Without the column there are none.
inline const Key<int64_t> kDrawnTokens{"drawn_tokens"};

// A service generates tokens as a stream and is the one object that recipes, the command line, a server and evaluation
// drive. Not thread-safe; only `step` does work. A sample's tokens depend on its prompt, its sampling parameters, its
// uid, the seed and the weights alone: not on the other requests in the batch, on the order of submission, on pauses,
// or on save and load in the middle. Only their number may depend on the clock too, for a request with a timeout.
class Service : public base::Stateful, public Completer {
 public:
  Service(model::Model& model, ServiceOptions options);
  ~Service() override;

  // Takes requests with columns uid, prompt_uid (rows that share it and the prompt share its blocks; without the column
  // it is the uid), ids = the prompt's tokens, and optionally `sampling` (JSON of SamplingParams, else the options')
  // and kDrawnTokens. May be called between steps. A request that goes on behind drawn tokens draws what it would have
  // drawn in one go, counts them for its parameters (max_tokens, penalties, stop strings, form), and emits new tokens
  // alone. Throws InputError, and takes no row, for an empty prompt, an id outside the vocabulary, a prompt longer than
  // the limit, no room for a token behind the drawn ones, more tokens than the cache can ever hold, a uid that is still
  // in flight or occurs twice, sampling parameters out of range, stop strings, a regex or a schema without a tokenizer,
  // and a form that cannot be followed.
  void submit(const Batch& requests) override;

  // Runs one step, which mixes prefill and decode. Returns false if there was nothing to do or the service is paused.
  // Requests whose timeout has passed end first, with Finish::kTimeout, and free their blocks for this step. Throws
  // GuardError if the weights changed and update() was not called, or if logits are not finite. With speculation a
  // request may get several tokens in one step: a proposed token is accepted if it is the one that would be drawn at
  // its place anyway, so tokens, log-probs and finish reasons have the same bits with and without speculation. If the
  // model's ranks share experts, all ranks must step together, each with its own requests or none, and the result is
  // false when none of them had anything to do.
  bool step() override;

  // Returns one emission for each request that has news, in the order in which requests first had news. Valid until the
  // next take().
  std::span<const Emission> take() override;

  void pause();  // steps do nothing until resume(); requests keep their place
  void resume();
  // Must be called after the weights changed: later tokens have this `version`, and cached keys and values are
  // recomputed. The caller's versions need not be the weights' own, which count until the first call.
  void update(uint64_t version);
  // Gives back the memory of the cache, of the steps' results and of a draft; the next step takes it again. Requests in
  // flight keep their place and are computed again, which gives the same bits.
  void release();
  // Ends requests with Finish::kCancelled; tokens not yet taken are still emitted. Unknown uids are ignored.
  void cancel(std::span<const int64_t> uids) override;

  int64_t running() const;   // submitted and not finished
  uint64_t version() const;  // that the next token will have
  ServiceStats stats() const override;

  // Save and load the requests in flight with their tokens so far; the cache is recomputed, which gives the same bits.
  // load() replaces all requests. Throws InputError, and changes nothing, if the saved service had another seed or a
  // request that this service would refuse, or if its state is damaged.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  bool step_own();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::generate

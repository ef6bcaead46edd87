#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/generate/sampling.h"
#include "collimate/model/model.h"

namespace collimate::generate {

enum class Finish : int32_t { kRunning = 0, kEos = 1, kStop = 2, kLength = 3, kCancelled = 4 };

// What one step produced for one request. `tokens` are new since the last take(); the last emission has finish != kRunning.
struct Emission {
  int64_t uid = 0;
  std::vector<int32_t> tokens;
  std::vector<float> log_probs;   // log-softmax(logits / temperature) of each, before truncation and penalties
  std::vector<int64_t> versions;  // weights version that sampled each token
  Finish finish = Finish::kRunning;
};

struct ServiceOptions {
  int64_t cache_blocks = 0;          // 0: as many as `max_batch_sequences` sequences of full length need
  int64_t max_batch_tokens = 2048;   // tokens of one step, prefill included
  int64_t max_batch_sequences = 256;
  int64_t max_sequence_tokens = 0;   // 0: the model's
  uint64_t seed = 0;                 // run seed of the draws
  std::vector<int32_t> eos_ids;
};

struct ServiceStats {
  int64_t steps = 0, prefill_tokens = 0, shared_prompt_tokens = 0, decoded_tokens = 0, preemptions = 0;
  int64_t blocks_used = 0, blocks_peak = 0;
};

// What streams: the one object that recipes, the command line, a server and evaluation drive. Not thread-safe; only `step`
// does work. A sample's tokens depend on its prompt, its sampling parameters, its uid and the weights alone: not on what
// else is in the batch, on the order of submission, on pauses, or on save and load in the middle.
class Service : public base::Stateful {
 public:
  Service(model::Model& model, ServiceOptions options);
  ~Service() override;

  // Rows: uid, prompt_uid (rows that share it and the prompt share its blocks), ids = the prompt's tokens, and optionally
  // `sampling` (JSON of SamplingParams). Also legal between steps. InputError: empty prompt, id outside the vocabulary,
  // prompt longer than the limit, uid already running.
  void submit(const Batch& requests);

  // Runs one step (prefill and decode mixed). False when nothing is left to do or the service is paused.
  bool step();

  // Emissions since the last take; valid until the next call of any method.
  std::span<const Emission> take();

  void pause();   // steps do nothing; requests keep their place
  void resume();
  // The weights changed: later tokens carry `version`; cached keys of older versions are recomputed.
  void update(uint64_t version);
  void cancel(std::span<const int64_t> uids);

  int64_t running() const;  // submitted and not finished
  ServiceStats stats() const;

  // Requests in flight with their tokens so far; the cache is rebuilt by recomputing, which gives the same bits.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace collimate::generate

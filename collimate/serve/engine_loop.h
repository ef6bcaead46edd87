#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/queue.h"
#include "collimate/generate/prompt_score.h"
#include "collimate/generate/service.h"
#include "collimate/serve/channel.h"
#include "collimate/serve/histogram.h"

namespace collimate::serve {

// An OverloadedError says that more is in flight than the server takes; the client may try again later.
class OverloadedError : public base::RunError {
 public:
  using base::RunError::RunError;
};
// A DrainingError says that the server is shutting down.
class DrainingError : public base::RunError {
 public:
  using base::RunError::RunError;
};
// An ExpiredError says that the request's timeout passed before its completions began.
class ExpiredError : public base::RunError {
 public:
  using base::RunError::RunError;
};

// A Work is one request: `choices_per_prompt` completions of each prompt. Choice p * choices_per_prompt + i is the i-th
// completion of prompt p.
struct Work {
  std::vector<std::vector<int32_t>> prompts;
  int64_t choices_per_prompt = 1;
  generate::SamplingParams sampling;  // max_tokens 0: nothing is drawn, each choice ends at once with kLength
  // Requests with the same seed, prompt and parameters get the same tokens, whatever else runs or was asked with them.
  std::optional<int64_t> seed;
  bool prompt_log_probs = false;  // also score the prompts, with sampling.top_log_probs of each token
  bool whole_answer = false;      // the reader keeps the whole answer in any case: no limit of unread tokens
};

// A ScoreStep does the next piece of scoring a prompt, which is of bounded work. The last one returns the prompt's
// log-probs, the others nothing.
using ScoreStep = std::function<std::optional<generate::PromptLogProbs>()>;
// A PromptScorer begins to score a prompt, at the temperature and with the top_log_probs of the parameters. Both
// functions are called in the engine's thread, between steps.
using PromptScorer = std::function<ScoreStep(std::span<const int32_t> ids, const generate::SamplingParams& sampling)>;

// An Engine holds what an EngineLoop drives.
struct Engine {
  std::unique_ptr<generate::Completer> service;
  PromptScorer score;           // empty: prompt_log_probs is an InputError
  std::function<void()> begin;  // called first in the engine's thread; may be empty
  // Clock of timeouts and of the time between tokens, called from any thread. Empty: base::now_seconds. The service's
  // own timeouts should use the same clock.
  std::function<double()> now_seconds = {};
};

struct EngineLimits {
  int64_t requests = 256;         // most completions in flight
  int64_t buffer_tokens = 16384;  // a Channel keeps so many unread tokens times its choices; of whole answers, all
};

struct EngineStatus {
  int64_t in_flight = 0;  // completions
  int64_t finished = 0, cancelled = 0, expired = 0;
  int64_t failures = 0;  // steps that threw
  generate::ServiceStats service;
  Histogram between_tokens{kTokenBounds};  // seconds; tokens that a step gave together share the time equally
  std::string broken;                      // why the engine no longer runs; empty while it does
};

// An EngineLoop runs the thread that owns an engine's service.
//   consumes  requests from a bounded queue, filled by `submit` in any thread
//   produces  pieces in each request's Channel, without ever waiting for a reader
//   waits for a request, when nothing is in flight; woken by the queue's push or close
// A choice that nobody reads any longer is cancelled before the next step. A step that throws fails all requests in
// flight with its cause, and the loop goes on. Prompts are scored one after the other, a piece between two steps, so
// that other requests get their tokens meanwhile.
class EngineLoop {
 public:
  // Starts the thread. `seed` is used for requests that name none.
  EngineLoop(Engine engine, EngineLimits limits, uint64_t seed);
  ~EngineLoop();  // fails what still runs with DrainingError

  // Hands a request to the engine without waiting; the Channel says what becomes of it. Thread-safe. Throws
  // OverloadedError when too much is in flight, DrainingError after drain(), RunError when the engine is broken.
  std::shared_ptr<Channel> submit(Work work);

  // Takes no further requests and waits for those in flight. Those that run at the deadline fail with DrainingError.
  // Returns how many completions failed so.
  int64_t drain(const base::Deadline& deadline);

  EngineStatus status() const;  // thread-safe

 private:
  struct Flight {
    Work work;
    std::shared_ptr<Channel> channel;
    std::vector<int64_t> uids;  // by choice
    int64_t running = 0;        // choices
    int64_t number = 0;
    double submitted_seconds = 0;
    ScoreStep scoring;  // of the first prompt that has no log-probs yet; empty between prompts
    std::vector<generate::PromptLogProbs> prompt_log_probs;
    std::vector<double> last_token_seconds;  // by choice; negative before its first token
  };
  struct Place {
    Flight* flight = nullptr;
    int64_t choice = 0;
  };

  void run();
  void run_guarded();
  void turn();
  void begin(Flight flight);
  bool busy(const Flight& flight) const;  // whether one of its uids is in flight
  void start(std::list<Flight>::iterator flight);
  void enter(Flight& flight);
  void score_piece();
  bool score_next(Flight& flight) const;
  void start_delayed();
  void end_waiting();
  double time_left(const Flight& flight) const;
  void cancel_unwanted();
  void deliver();
  void observe_tokens(const Place& place, int64_t tokens, double now);
  void end(Flight& flight, int64_t choice, generate::Finish finish);
  // Fails all requests. `cause` makes an exception for each, as no two readers may share one.
  void fail_all(const std::function<std::exception_ptr()>& cause);
  void release(int64_t choices);
  void publish();

  // Only the engine's thread uses these.
  Engine engine_;
  const EngineLimits limits_;
  const uint64_t seed_;
  std::list<Flight> flights_;
  std::list<Flight> scoring_;  // wait for their prompts' log-probs; only those of the first one are being computed
  std::list<Flight> delayed_;  // wait until a choice with the same uid (same seed and prompt) has ended
  std::unordered_map<int64_t, Place> by_uid_;
  int64_t begun_ = 0;
  Histogram between_tokens_{kTokenBounds};

  const std::function<double()> now_seconds_;
  base::Queue<Flight> queue_;
  std::atomic<bool> draining_ = false;
  std::atomic<bool> cut_ = false;  // tells the engine's thread to fail what is in flight

  mutable std::mutex mutex_;
  std::condition_variable idle_;  // the engine wakes drain()
  EngineStatus status_;           // in_flight counts from submit on

  std::thread thread_;
};

}  // namespace collimate::serve

#pragma once

#include <httplib.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collimate/serve/api.h"
#include "collimate/serve/completion.h"
#include "collimate/serve/connection.h"
#include "collimate/serve/engine_loop.h"
#include "collimate/serve/metrics.h"
#include "collimate/serve/reply.h"
#include "collimate/text/chat_template.h"

namespace collimate::serve {

// The model as requests see it.
struct ServedModel {
  std::string name;
  const text::Renderer& renderer;
  int64_t max_sequence_tokens = 0;  // prompt and completion
  int64_t created = 0;              // seconds since 1970
  std::vector<Gauge> gauges = {};   // what /metrics says of it
};

// The client went away: nobody reads the answer.
struct ClientGone : std::runtime_error {
  ClientGone() : std::runtime_error("the client has closed the connection") {}
};

// One request for completions from submission to its last byte, in the thread of its connection. It waits for the
// engine (a piece in its channel, or the channel's failure, wakes it; `stall_seconds` without either is an error) and,
// a few times a second, looks whether the client is still there.
class Exchange {
 public:
  // Tokenizes, submits and waits until the engine has accepted it. Throws ApiError, ClientGone, what EngineLoop::submit
  // throws and what the engine refused it with (InputError). Keeps references to all but the request.
  Exchange(ApiRequest request, const ServedModel& model, EngineLoop& engine, ServerMetrics& metrics,
           Connection& connection, double stall_seconds);
  ~Exchange();

  // The whole answer as JSON. Blocking; throws like the constructor, and what the request failed with.
  std::string whole();
  // The next events of the stream, some bytes of text/event-stream; empty after the last. Blocking; throws ClientGone.
  // Any other failure is an event, and the last one.
  std::string events();

 private:
  void check_template(const ApiRequest& request) const;
  std::vector<PromptTokens> prompts_of(const ApiRequest& request) const;
  Work work() const;
  bool opens_thoughts() const;
  std::string call_grammar() const;
  std::vector<Delta> wait();
  void read_calls(Delta& delta);
  std::string closing_events();
  void check_client();

  const ApiRequest request_;
  const ServedModel& model_;
  ServerMetrics& metrics_;
  Connection& connection_;
  const double stall_seconds_;
  const double begun_seconds_;
  std::vector<PromptTokens> prompts_;
  std::optional<Completions> completions_;
  std::optional<Reply> reply_;
  std::vector<text::CallReader> call_readers_;  // of each choice, where an answer is more than its text
  bool first_token_seen_ = false;
  bool opened_ = false;  // of a stream
  bool probes_ = false;  // with a comment, in place of an event
  bool closed_ = false;
};

// Says what went wrong as the interface does.
ApiError to_api_error(std::exception_ptr error);

}  // namespace collimate::serve

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

// A ServedModel is the model as requests see it.
struct ServedModel {
  std::string name;
  const text::Renderer& renderer;
  int64_t max_sequence_tokens = 0;                     // most tokens of prompt and completion together
  int64_t created = 0;                                 // seconds since 1970
  std::vector<Gauge> gauges = {};                      // properties of the model that /metrics shows
  nlohmann::json sampling = nlohmann::json::object();  // see ApiRules
};

// ClientGone says that the client has closed the connection, so that nobody reads the answer.
struct ClientGone : std::runtime_error {
  ClientGone() : std::runtime_error("the client has closed the connection") {}
};

// An Exchange is one request for completions from submission to its last byte, in the thread of its connection. While
// it waits for the engine, a piece in its channel or the channel's failure wakes it; `stall_seconds` without either is
// an error (504). It looks a few times a second whether the client is still there.
class Exchange {
 public:
  // Tokenizes and submits the request, and waits until the engine has accepted it. Throws ApiError, ClientGone, what
  // EngineLoop::submit throws, and InputError when the engine refuses the request. Keeps references to all arguments
  // but the request.
  Exchange(ApiRequest request, const ServedModel& model, EngineLoop& engine, ServerMetrics& metrics,
           Connection& connection, double stall_seconds);
  ~Exchange();

  // Waits for the whole answer and returns it as JSON. Throws ApiError, ClientGone and what the request failed with.
  std::string whole();
  // Waits for the next events of the stream and returns them as bytes of text/event-stream, "" after the last. Throws
  // ClientGone. Any other failure becomes an event, which is the last one.
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
  std::vector<text::CallReader> call_readers_;  // by choice; empty where an answer is only its text
  bool first_token_seen_ = false;
  bool opened_ = false;  // the stream has begun
  bool probes_ = false;  // the stream has to send a comment now, to find out whether the client is there
  bool closed_ = false;  // the stream's last events were returned
};

// Returns the ApiError that answers a request which failed with `error`. Logs errors of the server itself (500).
ApiError to_api_error(std::exception_ptr error);

}  // namespace collimate::serve

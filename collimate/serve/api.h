#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/text/chat_template.h"

namespace collimate::serve {

// A request that is refused, as OpenAI's interface says it: {"error": {message, type, param, code}} with a status.
struct ApiError : std::runtime_error {
  ApiError(int http_status, const std::string& message, std::string name = "", std::string error_code = "")
      : std::runtime_error(message), status(http_status), param(std::move(name)), code(std::move(error_code)) {}
  int status;
  std::string param;  // the field that is wrong, empty for none
  std::string code;   // empty for none
};

// One line. Broken UTF-8 in it is replaced.
std::string error_body(const ApiError& error);

enum class Endpoint { kChat, kCompletions };

struct ApiLimits {
  int64_t max_choices = 128;  // of one request
};

// A request for completions, checked and with its defaults filled in.
struct ApiRequest {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model;                  // empty: not named
  std::vector<text::Prompt> prompts;  // one for a chat
  int64_t choices_per_prompt = 1;
  generate::SamplingParams sampling;  // max_tokens 0: draw nothing
  bool to_the_end = false;            // no max_tokens given to a chat: as many as the model has positions for
  std::optional<int64_t> seed;
  std::vector<std::string> stop;
  bool echo = false;
  bool log_probs = false;
  int64_t top_log_probs = 0;  // so many of the most likely tokens beside each; also sampling.top_log_probs
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;
  std::vector<std::string> tools;  // names of those that may be called; the chat's prompt has their definitions
  bool must_call = false;          // the answer is calls of these and nothing else
  std::string called_tool;         // that one, once, where it has a name
  bool parallel_calls = true;      // several are allowed
  bool names_effort = false;       // reasoning_effort is among the variables of the chat's template

  int64_t choices() const { return static_cast<int64_t>(prompts.size()) * choices_per_prompt; }
};

// Reads a request's body. ApiError 400, naming the field, for anything that is not JSON in UTF-8, is of the wrong type
// or out of range, is not known, or would change the result in a way that is not offered here.
ApiRequest parse_request(Endpoint endpoint, std::string_view body, const ApiLimits& limits);

// ApiError 404 when a request names another model than the one that is served.
void check_model(const std::string& wanted, const std::string& served);

}  // namespace collimate::serve

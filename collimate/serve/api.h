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

// An ApiError refuses a request with an HTTP status and the body {"error": {message, type, param, code}} of OpenAI's
// interface.
struct ApiError : std::runtime_error {
  ApiError(int http_status, const std::string& message, std::string name = "", std::string error_code = "")
      : std::runtime_error(message), status(http_status), param(std::move(name)), code(std::move(error_code)) {}
  int status;
  std::string param;  // the field that is wrong, empty for none
  std::string code;   // empty for none
};

// Returns the error's body as JSON in one line. Broken UTF-8 in it is replaced.
std::string error_body(const ApiError& error);

enum class Endpoint { kChat, kCompletions };

struct ApiRules {
  int64_t max_choices = 128;  // of one request
  // Values of SamplingParams, in its JSON, for requests that do not name them. A request that draws nothing has none of
  // them, because it asks for the log-probs of its prompt.
  nlohmann::json sampling = nlohmann::json::object();
};

// An ApiRequest is a request for completions that was checked, with its defaults filled in.
struct ApiRequest {
  Endpoint endpoint = Endpoint::kCompletions;
  std::string model;                  // empty: the request names none
  std::vector<text::Prompt> prompts;  // one for a chat
  int64_t choices_per_prompt = 1;
  generate::SamplingParams sampling;  // max_tokens 0: draw nothing
  bool to_the_end = false;            // a chat without max_tokens: draw as many as the model has positions for
  std::optional<int64_t> seed;
  std::vector<std::string> stop;
  bool echo = false;
  bool log_probs = false;
  int64_t top_log_probs = 0;  // how many of the most likely tokens to show for each; equals sampling.top_log_probs
  bool return_token_ids = false;
  bool stream = false;
  bool include_usage = false;
  std::vector<std::string> tools;  // names of the tools that may be called; the chat's prompt has their definitions
  bool must_call = false;          // the answer has to be calls of tools and nothing else
  std::string called_tool;         // with must_call: the one tool to be called, once; empty: any of them
  bool parallel_calls = true;      // an answer may have several calls
  bool names_effort = false;       // reasoning_effort is among the variables of the chat's template

  int64_t choices() const { return static_cast<int64_t>(prompts.size()) * choices_per_prompt; }
};

// Reads a request's body. Throws ApiError 400 for a body that is not JSON in UTF-8, and, naming the field, for a field
// that is unknown, of the wrong type or out of range, or that would change the result in a way not offered here.
ApiRequest parse_request(Endpoint endpoint, std::string_view body, const ApiRules& rules);

// Throws ApiError 404 when a request names another model than the one that is served.
void check_model(const std::string& wanted, const std::string& served);

}  // namespace collimate::serve

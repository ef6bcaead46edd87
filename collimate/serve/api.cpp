#include "collimate/serve/api.h"

#include <algorithm>
#include <iterator>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/generate/sampling_fields.h"
#include "collimate/serve/chat_fields.h"
#include "collimate/serve/field.h"
#include "collimate/serve/form.h"
#include "collimate/text/json_numbers.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int64_t kMostTopOfText = 5;  // `logprobs` of a completion, as in OpenAI's interface
constexpr size_t kStopStrings = 16, kStopBytes = 1024;
constexpr size_t kSamplingEntries = 1024;  // most entries of a list or map, as each completion has a copy

// A RefusedField would change the result in a way that is not offered. It is refused unless its value is harmless, that
// is, asks for what happens anyway.
struct RefusedField {
  const char* name;
  bool (*harmless)(const json& value);
};
bool never(const json&) { return false; }
bool is_one(const json& value) { return value.is_number() && value.get<double>() == 1; }
bool is_empty(const json& value) { return value.empty() || value == ""; }
constexpr RefusedField kRefused[] = {
    {"best_of", is_one},
    {"use_beam_search", [](const json& value) { return value == false; }},
    {"suffix", is_empty},
    {"functions", is_empty},
    {"function_call", [](const json& value) { return value == "none" || value == "auto"; }},
    {"modalities", [](const json& value) { return value == json::array({"text"}); }},
    {"audio", never},
    {"prediction", never},
    {"verbosity", never},
    {"web_search_options", never},
};

// These fields do not change the result and are ignored.
constexpr const char* kIgnored[] = {"user",         "metadata",          "store",
                                    "service_tier", "safety_identifier", "prompt_cache_key"};

void read_stop(ApiRequest& request, const json& value) {
  const json list = value.is_array() ? value : json::array({value});
  if (list.size() > kStopStrings) wrong("stop", fmt::format("at most {} strings", kStopStrings), value);
  for (const json& stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty())
      wrong("stop", "strings that are not empty", stop);
    request.stop.push_back(stop.get<std::string>());
    if (request.stop.back().size() > kStopBytes) wrong("stop", fmt::format("at most {} bytes", kStopBytes), stop);
  }
}

std::vector<int32_t> read_ids(const json& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (const json& id : list) ids.push_back(static_cast<int32_t>(integer(id, "prompt", 0, 0x7fffffff)));
  return ids;
}

void read_prompt(ApiRequest& request, const json& value) {
  const std::string expected = "a text, a list of texts, of token ids, or of lists of token ids, not empty";
  if (value.is_string()) {
    request.prompts.emplace_back(value.get<std::string>());
    return;
  }
  if (!value.is_array() || value.empty()) wrong("prompt", expected, value);
  if (value[0].is_number()) {
    request.prompts.emplace_back(read_ids(value));
    return;
  }
  for (const json& prompt : value) {
    if (prompt.is_string()) {
      request.prompts.emplace_back(prompt.get<std::string>());
    } else if (prompt.is_array()) {
      request.prompts.emplace_back(read_ids(prompt));
    } else {
      wrong("prompt", expected, prompt);
    }
  }
}

void read_log_probs(ApiRequest& request, const json& value) {
  if (request.endpoint == Endpoint::kChat) {
    request.log_probs = flag(value, "logprobs");
    return;
  }
  request.top_log_probs = integer(value, "logprobs", 0, kMostTopOfText);
  request.log_probs = true;
}

void read_top_log_probs(ApiRequest& request, const json& value) {
  request.top_log_probs = integer(value, "top_logprobs", 0, generate::kMostTopLogProbs);
}

void read_stream_options(ApiRequest& request, const json& value) {
  if (!value.is_object()) wrong("stream_options", "an object", value);
  for (const auto& [key, part] : value.items()) {
    if (key == "include_usage") {
      request.include_usage = flag(part, "stream_options.include_usage");
    } else if (key != "include_obfuscation") {
      wrong("stream_options", "include_usage alone", value);
    }
  }
}

void read_max_tokens(ApiRequest& request, const json& value, const std::string& name) {
  const bool chat = request.endpoint == Endpoint::kChat;
  request.sampling.max_tokens = integer(value, name, chat ? 1 : 0, kAny);
  request.to_the_end = false;
}

// Reads tool_choice. auto and none do not force a call; none is handled in chat_fields.cpp.
void read_tool_choice(ApiRequest& request, const json& value) {
  if (value == "none" || value == "auto") return;
  request.must_call = true;
  if (value == "required") return;
  const json function = value.is_object() ? value.value("function", json()) : json();
  if (!function.is_object() || value.value("type", json()) != "function" || !function.value("name", json()).is_string())
    wrong("tool_choice", R"(none, auto, required or {"type": "function", "function": {"name"}})", value, "auto");
  request.called_tool = function.at("name").get<std::string>();
}

struct OwnField {
  const char* name;
  bool chat, completions;
  void (*read)(ApiRequest& request, const json& value);
};
void read_nothing(ApiRequest&, const json&) {}
constexpr OwnField kOwnFields[] = {
    {"model", true, true,
     [](ApiRequest& request, const json& value) {
       if (!value.is_string()) wrong("model", "a text", value);
       request.model = value.get<std::string>();
     }},
    {"messages", true, false, read_nothing},  // read in the order written, by chat_fields.h
    {"tools", true, false, read_nothing},
    {"chat_template_kwargs", true, false, read_nothing},
    {"reasoning_effort", true, false, read_nothing},
    {"tool_choice", true, false, [](ApiRequest& r, const json& value) { read_tool_choice(r, value); }},
    {"parallel_tool_calls", true, false,
     [](ApiRequest& r, const json& value) { r.parallel_calls = flag(value, "parallel_tool_calls"); }},
    {"prompt", false, true, read_prompt},
    {"max_tokens", true, true, [](ApiRequest& r, const json& value) { read_max_tokens(r, value, "max_tokens"); }},
    {"max_completion_tokens", true, false,
     [](ApiRequest& r, const json& value) { read_max_tokens(r, value, "max_completion_tokens"); }},
    {"n", true, true, [](ApiRequest& r, const json& value) { r.choices_per_prompt = integer(value, "n", 1, 1 << 20); }},
    {"seed", true, true,
     [](ApiRequest& r, const json& value) {
       r.seed = integer(value, "seed", std::numeric_limits<int64_t>::min(), kAny);
     }},
    {"stop", true, true, read_stop},
    {"echo", false, true, [](ApiRequest& r, const json& value) { r.echo = flag(value, "echo"); }},
    {"logprobs", true, true, read_log_probs},
    {"top_logprobs", true, false, read_top_log_probs},
    {"return_token_ids", true, true,
     [](ApiRequest& r, const json& value) { r.return_token_ids = flag(value, "return_token_ids"); }},
    {"stream", true, true, [](ApiRequest& r, const json& value) { r.stream = flag(value, "stream"); }},
    {"stream_options", true, true, read_stream_options},
};

template <class List>
auto find_named(const List& list, const std::string& name) {
  return std::find_if(std::begin(list), std::end(list), [&](const auto& entry) { return name == entry.name; });
}

// Returns the sampling field that requests call `name`, or null.
const generate::SamplingField* sampling_field(const std::string& name) {
  for (const generate::SamplingField& field : generate::kSamplingFields)
    if (field.request != nullptr && name == field.request) return &field;
  return nullptr;
}

void read_field(ApiRequest& request, const std::string& name, const json& value, json& sampling) {
  const bool chat = request.endpoint == Endpoint::kChat;
  if (const auto own = find_named(kOwnFields, name);
      own != std::end(kOwnFields) && (chat ? own->chat : own->completions)) {
    if (!value.is_null()) own->read(request, value);
  } else if (const auto* field = sampling_field(name)) {
    if (value.is_structured() && value.size() > kSamplingEntries)
      wrong(name, fmt::format("at most {} entries", kSamplingEntries), json(value.size()));
    if (!value.is_null()) sampling[field->name] = value;
  } else if (const auto refused = find_named(kRefused, name); refused != std::end(kRefused)) {
    if (!value.is_null() && !refused->harmless(value)) {
      throw ApiError(400,
                     base::expectation(name, "a request without this field, which this server does not support",
                                       shown(value), "leaving it out"),
                     name, "unsupported_parameter");
    }
  } else if (!is_form_field(name) && std::find(std::begin(kIgnored), std::end(kIgnored), name) == std::end(kIgnored)) {
    throw ApiError(
        400,
        base::expectation("request", "fields of OpenAI's interface, or those of docs/serving.md", shown(json(name))),
        name, "unknown_parameter");
  }
}

// Reads the sampling fields with the sampler's own checks. Throws ApiError 400 with a field's name as requests have it.
generate::SamplingParams read_sampling(const json& sampling) {
  const json any_length = {{"max_tokens", kAny}};  // check_whole compares min_tokens with the request's max_tokens
  for (const auto& [key, value] : sampling.items()) {
    try {
      json one = any_length;
      one[key] = value;
      generate::SamplingParams::from_json(one);
    } catch (const base::InputError& error) {
      const auto field = find_named(generate::kSamplingFields, key);
      throw ApiError(400, error.what(), field->request, "invalid_value");
    }
  }
  json all = any_length;
  all.update(sampling);
  return generate::SamplingParams::from_json(all);
}

// Returns what read() returns, and turns its InputError into ApiError 400.
template <class Read>
auto of_request(const Read& read) {
  try {
    return read();
  } catch (const base::InputError& error) {
    throw ApiError(400, error.what());
  }
}

json parse_body(std::string_view body) {
  if (!text::is_valid_utf8(body)) {
    const std::string got = fmt::format("a byte that is none at offset {}", text::valid_run(body));
    throw ApiError(400, base::expectation("request", "a body in UTF-8", got));
  }
  json out = of_request([&] { return base::parse_json(body, "request"); });
  if (!out.is_object()) throw ApiError(400, base::expectation("request", "a JSON object", shown(out)));
  return out;
}

void check_whole(const ApiRequest& request, const ApiRules& rules) {
  const bool chat = request.endpoint == Endpoint::kChat;
  if (request.prompts.empty() || (chat && text::turns_of(request.prompts[0])->empty())) {
    const std::string name = chat ? "messages" : "prompt";
    throw ApiError(400, base::expectation(name, "what is to be completed", "none"), name, "missing_required_parameter");
  }
  if (request.choices() > rules.max_choices) {
    throw ApiError(400,
                   base::expectation("n", fmt::format("at most {} completions in a request", rules.max_choices),
                                     fmt::to_string(request.choices()), "a smaller n or several requests"),
                   "n", "invalid_value");
  }
  if (const auto& sampling = request.sampling;
      !request.to_the_end && sampling.max_tokens > 0 && sampling.min_tokens > sampling.max_tokens) {
    throw ApiError(400,
                   base::expectation("min_tokens", fmt::format("at most max_tokens, {}", sampling.max_tokens),
                                     fmt::to_string(sampling.min_tokens)),
                   "min_tokens", "invalid_value");
  }
  if (request.top_log_probs > 0 && !request.log_probs) {
    throw ApiError(400, base::expectation("top_logprobs", "logprobs: true beside it", "none"), "top_logprobs",
                   "invalid_value");
  }
}

}  // namespace

std::string error_body(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  const char* type = error.status >= 500   ? "server_error"
                     : error.status == 429 ? "rate_limit_error"
                                           : "invalid_request_error";
  const nlohmann::ordered_json body = {
      {"error",
       {{"message", error.what()}, {"type", type}, {"param", or_null(error.param)}, {"code", or_null(error.code)}}}};
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

ApiRequest parse_request(Endpoint endpoint, std::string_view body, const ApiRules& rules) {
  const json fields = parse_body(body);
  ApiRequest request{.endpoint = endpoint, .to_the_end = endpoint == Endpoint::kChat};
  request.sampling.max_tokens = 16;  // the default for completions in OpenAI's interface
  json sampling = json::object();
  for (const auto& [name, value] : fields.items()) read_field(request, name, value, sampling);
  ordered_json written = ordered_json::object();  // keys in the order written, for templates and schemas
  if (endpoint == Endpoint::kChat || has_form(fields))
    written = of_request([&] { return text::parse_exact_json(body, "request"); });
  if (endpoint == Endpoint::kChat) read_chat(request, fields, written);
  // `max_completion_tokens` wins over max_tokens, which OpenAI's reference deprecates in its favour.
  if (const auto newer = fields.find("max_completion_tokens"); newer != fields.end())
    read_field(request, newer.key(), *newer, sampling);
  const int64_t max_tokens = request.sampling.max_tokens;
  json drawing = max_tokens > 0 ? rules.sampling : json::object();
  drawing.update(sampling);
  request.sampling = read_sampling(drawing);
  request.sampling.max_tokens = max_tokens;
  request.sampling.top_log_probs = request.top_log_probs;
  read_form(written, request.sampling);
  if (request.must_call && !(request.sampling.regex.empty() && request.sampling.json_schema.empty()))
    wrong("tool_choice", "none or auto beside a form of the answer", fields.at("tool_choice"), "auto");
  check_whole(request, rules);
  return request;
}

void check_model(const std::string& wanted, const std::string& served) {
  if (wanted == served) return;
  throw ApiError(404, base::expectation("model", fmt::format("\"{}\"", served), shown(json(wanted))), "model",
                 "model_not_found");
}

}  // namespace collimate::serve

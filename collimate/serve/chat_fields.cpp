#include "collimate/serve/chat_fields.h"

#include <algorithm>
#include <iterator>

#include "collimate/base/error.h"
#include "collimate/serve/field.h"
#include "collimate/text/messages_json.h"

namespace collimate::serve {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Keys that a message may have. Any other key may only be null or empty: our answers have "refusal": null, and clients
// send them back as messages.
constexpr const char* kMessageKeys[] = {"role",         "content",           "name",      "tool_calls",
                                        "tool_call_id", "reasoning_content", "reasoning", "thinking"};

// Returns what read() returns, and turns its errors into ApiError 400 that names the field.
template <class Read>
auto reading(const std::string& name, const json& value, const Read& read) {
  try {
    return read();
  } catch (const base::InputError& error) {
    throw ApiError(400, error.what(), name, "invalid_value");
  } catch (const json::exception&) {
    wrong(name, "values of the types that the interface has", value);
  }
}

// Returns the one prompt of a chat, which the first field that needs it makes.
text::Conversation& conversation_of(ApiRequest& request) {
  if (request.prompts.empty()) request.prompts.emplace_back(text::Conversation());
  return std::get<text::Conversation>(request.prompts[0]);
}

void read_messages(ApiRequest& request, const json& value, const ordered_json& written) {
  if (!value.is_array() || value.empty()) wrong("messages", "a list of at least one message", value);
  for (const json& message : value) {
    if (!message.is_object()) wrong("messages", "messages {role, content}", message);
    for (const auto& [key, part] : message.items()) {
      if (std::ranges::find(kMessageKeys, key) == std::end(kMessageKeys) && !part.empty())
        wrong("messages", fmt::format("messages of {}", fmt::join(kMessageKeys, ", ")), json{{key, part}});
    }
  }
  conversation_of(request).turns =
      reading("messages", value, [&] { return text::messages_from_json(written, "messages"); });
}

void read_tools(ApiRequest& request, const json& value, const ordered_json& written) {
  if (value.empty()) return;
  if (!value.is_array()) wrong("tools", "a list of tools", value);
  for (const json& tool : value) {
    const json function = tool.is_object() ? tool.value("function", json()) : json();
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string() ||
        tool.value("type", json("function")) != "function")
      wrong("tools", "tools {type: function, function: {name, description, parameters}}", tool);
    request.tools.push_back(function["name"].get<std::string>());
  }
  conversation_of(request).inputs.tools = written;
}

void read_variables(ApiRequest& request, const json& value, const ordered_json& written) {
  if (!value.is_object()) wrong("chat_template_kwargs", "an object", value);
  conversation_of(request).inputs.variables = reading(
      "chat_template_kwargs", value, [&] { return text::variables_from_json(written, "chat_template_kwargs"); });
}

// Reads reasoning_effort, OpenAI's word for how much a model thinks before it answers, into the template's variable of
// the same name.
void read_effort(ApiRequest& request, const json& value, const ordered_json&) {
  static const std::vector<std::string> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh"};
  if (!value.is_string() || std::ranges::count(kEfforts, value.get_ref<const std::string&>()) == 0)
    wrong("reasoning_effort", fmt::format("one of {}", fmt::join(kEfforts, ", ")), value,
          "chat_template_kwargs for another word of the template");
  ordered_json& variables = conversation_of(request).inputs.variables;
  if (variables.is_null()) variables = ordered_json::object();
  if (const auto said = variables.find("reasoning_effort"); said != variables.end() && *said != ordered_json(value))
    wrong("reasoning_effort", fmt::format("{}, as chat_template_kwargs says", shown(*said)), value,
          "leaving one of them out");
  variables["reasoning_effort"] = value;
  request.names_effort = true;
}

// Throws ApiError 400 if the answer has to be a call and there are no tools, or none of the name that is asked for.
void check_call(const ApiRequest& request, const json& fields) {
  const json choice = fields.value("tool_choice", json());
  if (request.tools.empty()) wrong("tool_choice", "tools beside it", choice, "auto");
  if (!request.called_tool.empty() && std::ranges::count(request.tools, request.called_tool) == 0)
    wrong("tool_choice", fmt::format("one of the tools {}", fmt::join(request.tools, ", ")), choice);
}

// Applies tool_choice and parallel_tool_calls. With tool_choice none, the model is not shown the tools.
void apply_tool_choice(ApiRequest& request, const json& fields) {
  if (request.must_call) return check_call(request, fields);
  if (fields.value("tool_choice", json()) == "none" && !request.tools.empty()) {
    request.tools.clear();
    conversation_of(request).inputs.tools = nullptr;
  }
  if (!request.tools.empty() && !request.parallel_calls)
    wrong("parallel_tool_calls", "true, as a model that may call is not kept from calling several tools", json(false),
          "leaving it out, or tool_choice: required");
}

}  // namespace

void read_chat(ApiRequest& request, const json& fields, const ordered_json& written) {
  const auto read = [&](const char* name, const auto& reader) {
    if (const auto value = fields.find(name); value != fields.end() && !value->is_null())
      reader(request, *value, written.at(name));
  };
  read("messages", read_messages);
  read("tools", read_tools);
  read("chat_template_kwargs", read_variables);
  read("reasoning_effort", read_effort);  // adds to the variables of chat_template_kwargs
  apply_tool_choice(request, fields);
}

}  // namespace collimate::serve

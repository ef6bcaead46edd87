#include "collimate/text/messages_json.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/text/call_body.h"
#include "collimate/text/json_numbers.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void wrong(const std::string& where, const std::string& expected, const ordered_json& got,
                        const std::string& remedy = "") {
  const std::string shown = got.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  throw base::InputError(base::expectation(where, expected, base::beginning_of(shown, 80), remedy));
}

bool says_nothing(const ordered_json& value) { return value.is_null() || value.empty() || value == ""; }

// Throws InputError for keys of a message that change what the model sees or learns, but that nothing here reads.
void refuse_unread(const ordered_json& message, const std::string& where) {
  static const std::pair<const char*, const char*> kUnread[] = {
      {"function_call", R"("tool_calls": [{"function": {...}}])"},
      {"weight", "messages without it: data.train_on says which turns are trained"}};
  for (const auto& [key, remedy] : kUnread)
    if (const auto found = message.find(key); found != message.end() && !says_nothing(*found))
      wrong(where, fmt::format("messages without {}, which nothing here reads", key), *found, remedy);
}

// Returns the JSON that stands in a text, or the value itself where it is no text.
ordered_json unquoted(const ordered_json& value, const std::string& where) {
  return value.is_string() ? parse_exact_json(value.get_ref<const std::string&>(), where) : value;
}

// Returns the value as `unquoted` does, or null where it says nothing.
ordered_json said(const ordered_json& value, const std::string& where) {
  if (says_nothing(value)) return nullptr;
  ordered_json read = unquoted(value, where);
  return says_nothing(read) ? ordered_json() : read;
}

ordered_json call_from_json(const ordered_json& value, const std::string& where) {
  const bool bare = value.is_object() && value.contains("name") && !value.contains("function");
  ordered_json call = bare ? ordered_json{{"type", "function"}, {"function", value}} : value;
  const auto function = call.is_object() ? call.find("function") : call.end();
  const bool named = call.is_object() && function != call.end() && function->is_object() &&
                     function->contains("name") && function->at("name").is_string();
  if (!named) wrong(where, "calls of tools {function: {name, arguments}}", value);
  ordered_json& arguments = (*function)["arguments"];
  if (says_nothing(arguments)) arguments = ordered_json::object();
  const ordered_json read = unquoted(arguments, where + " arguments of " + function->at("name").get<std::string>());
  if (!read.is_object()) wrong(where, "a call's arguments as an object", arguments);
  return call;
}

ordered_json calls_from_json(const ordered_json& value, const std::string& where) {
  const ordered_json list = unquoted(value, where);
  if (!list.is_array()) wrong(where, "a list of calls", value);
  ordered_json calls = ordered_json::array();
  for (const ordered_json& call : list) calls.push_back(call_from_json(call, where));
  return calls;
}

// Returns the members that templates read beside role and content.
ordered_json other_members(const ordered_json& message, const std::string& where) {
  ordered_json more;
  const auto keep = [&](const char* key, const char* kept_as) {
    const auto found = message.find(key);
    if (found == message.end() || says_nothing(*found) || more.contains(kept_as)) return;
    const bool calls = std::string_view(key) == "tool_calls";
    if (!calls && !found->is_string()) wrong(where, fmt::format("{} as text", key), *found);
    more[kept_as] = calls ? calls_from_json(*found, where) : *found;
  };
  for (const char* key : {"tool_calls", "tool_call_id", "name"}) keep(key, key);
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) keep(key, "reasoning_content");
  return more;
}

std::string content_text(const ordered_json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) wrong(where, "a message's content as text", content);
  std::string out;
  for (const ordered_json& part : content) {
    const bool text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text");
    if (!text || !part["text"].is_string()) wrong(where, "content parts of type text", part);
    out += part["text"].get_ref<const std::string&>();
  }
  return out;
}

std::string role_name(const ordered_json& role, const std::string& where) {
  if (!role.is_string()) wrong(where, "a role as text", role);
  const std::string name = role.get<std::string>();
  if (name == "human") return "user";
  if (name == "gpt" || name == "function_call") return "assistant";
  if (name == "observation") return "tool";
  return name;
}

}  // namespace

Message message_from_json(const ordered_json& value, const std::string& where) {
  if (value.is_object() && value.contains("role")) {
    refuse_unread(value, where);
    Message message{role_name(value.at("role"), where), "", other_members(value, where)};
    const ordered_json content = value.value("content", ordered_json());
    if (value.contains("content") && !(content.is_null() && message.calls_tools()))
      message.content = content_text(content, where);
    if (message.calls_tools() && message.role != "assistant")
      wrong(where, "calls of tools in messages of the assistant alone", value);
    if (value.contains("content") || message.calls_tools()) return message;
  }
  if (value.is_object() && value.contains("from") && value.contains("value")) {
    refuse_unread(value, where);
    return {role_name(value.at("from"), where), content_text(value.at("value"), where), other_members(value, where)};
  }
  wrong(where, "a message {role, content} or {from, value}", value);
}

ordered_json message_json(const Message& message) {
  ordered_json out = {{"role", message.role}, {"content", message.content}};
  if (message.more.is_object()) out.update(message.more);
  return out;
}

Messages messages_from_json(const ordered_json& value, const std::string& where) {
  if (!value.is_array() || value.empty()) wrong(where, "a list of messages", value);
  Messages out;
  for (const ordered_json& entry : value) out.push_back(message_from_json(entry, where));
  return out;
}

ordered_json tools_from_json(const ordered_json& value, const std::string& where) {
  ordered_json tools = said(value, where);
  if (tools.is_null()) return tools;
  const auto is_definition = [](const ordered_json& tool) {
    return tool.is_object() && function_of(tool).is_object() &&
           function_of(tool).value("name", ordered_json("")).is_string();
  };
  if (!tools.is_array() || !std::ranges::all_of(tools, is_definition))
    wrong(where, "a list of definitions of tools", value);
  return tools;
}

ordered_json variables_from_json(const ordered_json& value, const std::string& where) {
  ordered_json variables = said(value, where);
  if (!variables.is_null() && !variables.is_object())
    wrong(where, "variables of the chat template {name: value}", value);
  return variables;
}

}  // namespace collimate::text

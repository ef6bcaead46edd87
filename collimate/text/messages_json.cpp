#include "collimate/text/messages_json.h"

#include <utility>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"

namespace collimate::text {
namespace {

using nlohmann::json;

[[noreturn]] void wrong(const std::string& where, const std::string& expected, const json& got,
                        const std::string& remedy = "") {
  const std::string shown = got.dump(-1, ' ', false, json::error_handler_t::replace);
  throw base::InputError(base::expectation(where, expected, base::beginning_of(shown, 80), remedy));
}

// A call of a tool stands beside the content, where no template here looks: left out, the turn would end without it.
void refuse_tool_calls(const json& message, const std::string& where) {
  for (const char* key : {"tool_calls", "function_call"}) {
    const auto found = message.find(key);
    if (found == message.end() || found->empty()) continue;
    wrong(where, fmt::format("messages without {}, which no chat template here renders", key), *found,
          "calls written out in the message's content, or rows without them");
  }
}

// Keys of a message that change what the model sees or learns, and that no template here reads.
void refuse_unread(const json& message, const std::string& where) {
  static const std::pair<const char*, const char*> kUnread[] = {
      {"reasoning_content", "the thoughts written out in the message's content, or rows without them"},
      {"weight", "messages without it: data.train_on says which turns are trained"}};
  for (const auto& [key, remedy] : kUnread) {
    const auto found = message.find(key);
    if (found == message.end() || found->is_null() || *found == "") continue;
    wrong(where, fmt::format("messages without {}, which nothing here reads", key), *found, remedy);
  }
}

std::string content_text(const json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) wrong(where, "a message's content as text", content);
  std::string out;
  for (const json& part : content) {
    const bool text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text");
    if (!text || !part["text"].is_string()) wrong(where, "content parts of type text", part);
    out += part["text"].get_ref<const std::string&>();
  }
  return out;
}

std::string role_name(const json& role, const std::string& where) {
  if (!role.is_string()) wrong(where, "a role as text", role);
  const std::string name = role.get<std::string>();
  if (name == "human") return "user";
  if (name == "gpt" || name == "function_call") return "assistant";
  if (name == "observation") return "tool";
  return name;
}

}  // namespace

Message message_from_json(const json& json, const std::string& where) {
  if (json.is_object()) {
    refuse_tool_calls(json, where);
    refuse_unread(json, where);
  }
  if (json.is_object() && json.contains("role") && json.contains("content")) {
    return {role_name(json.at("role"), where), content_text(json.at("content"), where)};
  }
  if (json.is_object() && json.contains("from") && json.contains("value")) {
    return {role_name(json.at("from"), where), content_text(json.at("value"), where)};
  }
  wrong(where, "a message {role, content} or {from, value}", json);
}

Messages messages_from_json(const json& json, const std::string& where) {
  if (!json.is_array() || json.empty()) wrong(where, "a list of messages", json);
  Messages out;
  for (const auto& entry : json) out.push_back(message_from_json(entry, where));
  return out;
}

}  // namespace collimate::text

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace collimate::text {

struct Message {
  std::string role;     // "system", "user", "assistant", "tool"
  std::string content;  // "" where there is none, as beside calls of tools
  // The message's other members, an object of tool_calls, tool_call_id, name and reasoning_content, or null for none.
  nlohmann::ordered_json more = nullptr;

  bool calls_tools() const { return more.is_object() && more.contains("tool_calls"); }
  bool operator==(const Message&) const = default;
};
using Messages = std::vector<Message>;

// Says what a template is given beside the turns.
struct TemplateInputs {
  nlohmann::ordered_json tools = nullptr;      // a list of definitions, never an empty one; null for none
  nlohmann::ordered_json variables = nullptr;  // an object (chat_template_kwargs), or null

  bool empty() const { return tools.is_null() && variables.is_null(); }
  bool operator==(const TemplateInputs&) const = default;
};

struct Conversation {
  Conversation(Messages the_turns = {}, TemplateInputs the_inputs = {})  // NOLINT(google-explicit-constructor)
      : turns(std::move(the_turns)), inputs(std::move(the_inputs)) {}

  Messages turns;
  TemplateInputs inputs;
  bool operator==(const Conversation&) const = default;
};

// A prompt as the data has it: text that is taken as it is, a conversation that a template renders, or ids.
using Prompt = std::variant<std::string, Conversation, std::vector<int32_t>>;

// Returns the turns of a prompt that is a conversation, else null.
inline const Messages* turns_of(const Prompt& prompt) {
  const auto* conversation = std::get_if<Conversation>(&prompt);
  return conversation == nullptr ? nullptr : &conversation->turns;
}

}  // namespace collimate::text

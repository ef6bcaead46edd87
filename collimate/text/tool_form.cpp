#include "collimate/text/tool_form.h"

#include <optional>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/text/jinja/value.h"
#include "collimate/text/json_numbers.h"
#include "collimate/text/messages_json.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// Returns the JSON as json.dumps writes it.
std::string dumped(const ordered_json& value) { return jinja::to_json(jinja::from_json(value), {}); }

ordered_json shaped_arguments(const ordered_json& arguments, const ToolForm& form) {
  if (form.arguments_as_text) return arguments.is_string() ? arguments : ordered_json(dumped(arguments));
  if (!arguments.is_string()) return arguments;
  return parse_exact_json(arguments.get_ref<const std::string&>(), "arguments of a call");
}

// Returns a conversation with a call that no other has; its id is one that Mistral's templates take.
Messages probe() {
  const ordered_json function = {{"name", "probe_tool"}, {"arguments", {{"probe_key", "probe_value"}}}};
  const ordered_json call = {{"id", "probe0001"}, {"type", "function"}, {"function", function}};
  return {{"user", "probe"}, {"assistant", "", {{"tool_calls", ordered_json::array({call})}}}};
}

// Returns the text of the probe's first turns; "" where the template refuses them.
std::string probed(const jinja::Template& chat, ordered_json variables, const ToolForm& form, size_t turns) {
  variables["messages"] = ordered_json::array();
  const Messages messages = probe();
  for (size_t i = 0; i < turns; ++i) variables["messages"].push_back(message_json(messages[i], form));
  variables["add_generation_prompt"] = turns < messages.size();
  try {
    return chat.render(variables);
  } catch (const base::InputError&) {
    return "";
  }
}

// Returns whether the template says a word to a model that gets tools.
bool tells(const jinja::Template& chat, ordered_json variables, const ToolForm& form, const char* word) {
  variables["tools"] = {{{"type", "function"}, {"function", {{"name", "probe_tool"}, {"description", "probe"}}}}};
  return probed(chat, std::move(variables), form, 1).find(word) != std::string::npos;
}

bool writes_calls(const std::string& text) {
  const bool quoted = text.find("\\\"probe_key") != std::string::npos;
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  return !quoted && has("probe_tool") && has("probe_key") && has("probe_value") && !has("None");
}

}  // namespace

ToolForm tool_form_of(const jinja::Template& chat, const ordered_json& variables) {
  std::optional<ToolForm> unread;
  for (const bool arguments_as_text : {false, true})
    for (const EmptyContent content : {EmptyContent::kAbsent, EmptyContent::kNull, EmptyContent::kText}) {
      ToolForm form{arguments_as_text, content};
      const std::string text = probed(chat, variables, form, 2);
      if (!writes_calls(text)) continue;
      form.calls = call_form_of(text, probed(chat, variables, form, 1), "probe_tool");
      if (!unread) unread = form;
      if (form.calls == CallForm::kUnknown) continue;
      if (form.calls == CallForm::kObject && tells(chat, variables, form, "functools["))
        form.calls = CallForm::kFunctools;
      return form;
    }
  return unread.value_or(ToolForm{});
}

ordered_json message_json(const Message& message, const ToolForm& form) {
  ordered_json out = message_json(message);
  if (!message.more.is_object()) return out;
  if (const auto thoughts = message.more.find("reasoning_content"); thoughts != message.more.end())
    for (const char* other_name : {"reasoning", "thinking"}) out[other_name] = *thoughts;
  if (!message.calls_tools()) return out;
  if (message.content.empty() && form.empty_content == EmptyContent::kAbsent) out.erase("content");
  if (message.content.empty() && form.empty_content == EmptyContent::kNull) out["content"] = nullptr;
  for (ordered_json& call : out["tool_calls"]) {
    ordered_json& function = call["function"];
    function["arguments"] = shaped_arguments(function["arguments"], form);
  }
  return out;
}

}  // namespace collimate::text

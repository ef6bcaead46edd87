#include "collimate/text/call_body.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "collimate/base/stripped.h"
#include "collimate/text/argument_value.h"
#include "collimate/text/harmony.h"
#include "collimate/text/literal_calls.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

// Reads a text from its beginning, blanks between its parts left out. A part that is not there leaves the text as it
// is.
class Parts {
 public:
  explicit Parts(std::string_view text) : rest_(base::stripped(text)) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  bool skip(std::string_view mark) {
    if (!rest_.starts_with(mark)) return false;
    rest_ = base::stripped(rest_.substr(mark.size()));
    return true;
  }
  // Takes the text before a mark, and the mark.
  std::optional<std::string_view> until(std::string_view mark) {
    const size_t at = rest_.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_ = base::stripped(rest_.substr(at + mark.size()));
    return before;
  }
  // Takes the text between two marks, untouched, and the marks.
  std::optional<std::string_view> between(std::string_view open, std::string_view close) {
    if (!rest_.starts_with(open)) return std::nullopt;
    rest_.remove_prefix(open.size());
    return until(close);
  }
  std::optional<std::string_view> json() {
    const size_t length = json_length(rest_);
    if (length == 0) return std::nullopt;
    const std::string_view value = rest_.substr(0, length);
    rest_ = base::stripped(rest_.substr(length));
    return value;
  }

 private:
  std::string_view rest_;
};

std::optional<std::string> object_text(std::optional<std::string_view> written) {
  if (!written || !written->starts_with('{')) return std::nullopt;
  return json_text(*written);
}

// Returns the call that well-formed JSON says; nothing where it says none.
std::optional<ToolCall> call_of(std::string_view json) {
  if (!json.starts_with('{')) return std::nullopt;
  std::map<std::string, std::string> members;
  for (Parts parts(json.substr(1, json.size() - 2)); !parts.empty(); parts.skip(",")) {
    const std::string key = ordered_json::parse(*parts.json());
    parts.skip(":");
    members[key] = *parts.json();
  }
  if (!members["name"].starts_with('"')) return std::nullopt;
  std::string& arguments = members[members.contains("arguments") ? "arguments" : "parameters"];
  if (arguments.empty()) arguments = "{}";
  if (!arguments.starts_with('{')) return std::nullopt;
  return ToolCall{ordered_json::parse(members["name"]), arguments};
}

// Reads calls that are objects or lists of objects, which blanks may divide; returns none where the text is anything
// else.
std::vector<ToolCall> json_calls(std::string_view text) {
  std::vector<ToolCall> calls;
  for (Parts parts(text); !parts.empty();) {
    const auto written = parts.json();
    const auto value = written ? json_text(*written) : std::nullopt;
    if (!value) return {};
    const bool list = value->starts_with('[');
    for (Parts all(list ? std::string_view(*value).substr(1, value->size() - 2) : *value); !all.empty();
         all.skip(",")) {
      const std::optional<ToolCall> call = call_of(*all.json());
      if (!call) return {};
      calls.push_back(*call);
    }
  }
  return calls;
}

// Reads a name, an id that may follow it, and an object of arguments behind them.
std::vector<ToolCall> named_call(std::string_view text) {
  Parts parts(text);
  std::string_view name = parts.rest().substr(0, parts.rest().find('{'));
  parts.skip(name);
  const auto arguments = object_text(parts.json());
  if (!arguments || !parts.empty()) return {};
  if (name = base::stripped(name); name.ends_with(kArgumentsMark)) name.remove_suffix(kArgumentsMark.size());
  const size_t mark = std::min(name.find(kIdMark), name.size());
  const std::string_view id = name.substr(std::min(mark + kIdMark.size(), name.size()));
  return {{std::string(base::stripped(name.substr(0, mark))), *arguments, std::string(base::stripped(id))}};
}

// V3 writes a type, a mark, a name and fenced JSON, V3.1 a name, a mark and JSON.
std::vector<ToolCall> deepseek_calls(std::string_view text) {
  std::vector<ToolCall> calls;
  for (Parts parts(text); !parts.empty();) {
    const auto one = parts.between("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>");
    if (!one) return {};
    Parts call(*one);
    auto name = call.until("<｜tool▁sep｜>");
    if (name && !call.rest().starts_with('{')) name = call.until("```json");
    const auto arguments = name ? object_text(call.json()) : std::nullopt;
    if (!arguments) return {};
    call.skip("```");
    if (!call.empty()) return {};
    calls.push_back({std::string(base::stripped(*name)), *arguments});
  }
  return calls;
}

// Returns the schema of a function's parameter, null where there is none.
ordered_json schema_of(const ordered_json& tools, std::string_view function, const std::string& key) {
  for (const ordered_json& tool : tools) {
    const ordered_json& one = function_of(tool);
    if (one.value("name", "") != function) continue;
    const auto pointer = ordered_json::json_pointer("/parameters/properties") / key;
    return one.contains(pointer) ? one.at(pointer) : ordered_json();
  }
  return {};
}

// Collects arguments that are written one by one; of those with one name the last stays.
class Arguments {
 public:
  Arguments(const ordered_json& tools, std::string_view function) : tools_(tools), function_(function) {}

  void set(std::string_view key, std::string_view value) {
    const std::string name(key);
    const auto has_name = [&](const auto& one) { return one.first == name; };
    auto one = std::ranges::find_if(all_, has_name);
    if (one == all_.end()) one = all_.insert(one, {name, ""});
    one->second = argument_value(value, schema_of(tools_, function_, name));
  }
  std::string json() const {
    std::string out;
    for (const auto& [name, value] : all_) out += (out.empty() ? "" : ",") + ordered_json(name).dump() + ":" + value;
    return "{" + out + "}";
  }

 private:
  const ordered_json& tools_;
  std::string_view function_;
  std::vector<std::pair<std::string, std::string>> all_;
};

// Takes off the line ends around a value, which stands on lines of its own.
std::string_view without_lines(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

std::vector<ToolCall> function_call(std::string_view text, const ordered_json& tools) {
  Parts parts(text);
  const auto name = parts.between("<function=", ">");
  if (!name) return {};
  Arguments arguments(tools, *name);
  while (const auto parameter = parts.between("<parameter=", "</parameter>")) {
    const size_t end = parameter->find('>');
    if (end == std::string_view::npos) return {};
    arguments.set(parameter->substr(0, end), without_lines(parameter->substr(end + 1)));
  }
  if (!parts.skip("</function>") || !parts.empty()) return {};
  return {{std::string(*name), arguments.json()}};
}

std::vector<ToolCall> keys_call(std::string_view text, const ordered_json& tools) {
  Parts parts(text);
  const std::string_view all = parts.rest(), name = base::stripped(all.substr(0, all.find("<arg_key>")));
  parts.skip(name);
  Arguments arguments(tools, name);
  while (const auto key = parts.between("<arg_key>", "</arg_key>")) {
    const auto value = parts.between("<arg_value>", "</arg_value>");
    if (!value) return {};
    arguments.set(*key, *value);
  }
  if (!parts.empty()) return {};
  return {{std::string(name), arguments.json()}};
}

// Reads one message of harmony, from its <|start|> to its end.
std::vector<ToolCall> harmony_call(std::string_view text) {
  const size_t message = text.find(harmony::kMessage);
  if (message == std::string_view::npos) return {};
  Parts parts(text.substr(message + harmony::kMessage.size()));
  const auto arguments = object_text(parts.json());
  const std::string name = harmony::header_of(text.substr(0, message)).function();
  if (!arguments || !parts.empty() || name.empty()) return {};
  return {{name, *arguments}};
}

}  // namespace

CallMarks call_marks(CallForm form) {
  switch (form) {
    case CallForm::kTagged:
    case CallForm::kFunction:
    case CallForm::kKeys:
      return {"<tool_call>", "</tool_call>"};
    case CallForm::kDeepSeek:
      return {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"};
    case CallForm::kPhi:
      return {"<|tool_call|>", "<|/tool_call|>"};
    case CallForm::kGemma:
      return {"<|tool_call>", "<tool_call|>"};
    case CallForm::kPython:
      return {"<|tool_call_start|>", "<|tool_call_end|>"};
    case CallForm::kHarmony:
      return {harmony::kStart, harmony::kCall};
    default:
      return {};
  }
}

std::string_view call_mark_ahead(CallForm form) {
  if (form == CallForm::kFunctools) return "functools";
  return form == CallForm::kObject ? "<|python_tag|>" : "[TOOL_CALLS]";
}

std::vector<std::string_view> call_tokens(CallForm form) {
  switch (form) {
    case CallForm::kKeys:
      return {"<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
    case CallForm::kDeepSeek:
      return {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
              "<｜tool▁sep｜>"};
    case CallForm::kHarmony:
      return {harmony::kStart, harmony::kChannel, harmony::kConstrain, harmony::kMessage,
              harmony::kEnd,   harmony::kCall,    harmony::kReturn};
    case CallForm::kGemma:
      return {call_marks(form).open, call_marks(form).close, kGemmaQuote};
    case CallForm::kNamed:
      return {call_mark_ahead(form), kIdMark, kArgumentsMark};
    case CallForm::kUnknown:
    case CallForm::kFunctools:
      return {};
    case CallForm::kObject:
    case CallForm::kList:
      return {call_mark_ahead(form)};
    default:
      return {call_marks(form).open, call_marks(form).close};
  }
}

const ordered_json& function_of(const ordered_json& tool) {
  return tool.contains("function") ? tool.at("function") : tool;
}

std::vector<std::string> tool_names(const ordered_json& tools) {
  std::vector<std::string> names;
  for (const ordered_json& tool : tools) names.push_back(function_of(tool).value("name", ""));
  return names;
}

bool call_only(const std::vector<ToolCall>& calls, const std::vector<std::string>& names) {
  const auto is_known = [&](const ToolCall& call) { return std::ranges::find(names, call.name) != names.end(); };
  return !calls.empty() && std::ranges::all_of(calls, is_known);
}

size_t json_length(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = i >= text.size() || c != '"';
      if (!quoted && depth == 0) return i + 1;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth <= 0) return depth == 0 ? i + 1 : 0;
    } else if (depth == 0) {
      return std::min(text.find_first_of(",:]} \t\r\n"), text.size());
    }
  }
  return 0;
}

std::vector<ToolCall> calls_of(CallForm form, std::string_view body, const ordered_json& tools) {
  switch (form) {
    case CallForm::kFunction:
      return function_call(body, tools);
    case CallForm::kKeys:
      return keys_call(body, tools);
    case CallForm::kDeepSeek:
      return deepseek_calls(body);
    case CallForm::kGemma:
      return gemma_call(body);
    case CallForm::kPython:
      return python_calls(body);
    case CallForm::kNamed:
      return named_call(body);
    case CallForm::kHarmony:
      return harmony_call(body);
    default:
      return json_calls(body);
  }
}

}  // namespace collimate::text

#include "collimate/text/call_body.h"

#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/stripped.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

std::optional<ordered_json> json_of(std::string_view text) {
  try {
    return base::parse_ordered_json(text, "a call");
  } catch (const base::InputError&) {  // a text that only looks like one
    return std::nullopt;
  }
}

std::optional<ToolCall> call_of(const ordered_json& value) {
  if (!value.is_object() || !value.contains("name") || !value.at("name").is_string()) return std::nullopt;
  const char* key = value.contains("arguments") ? "arguments" : "parameters";
  const ordered_json arguments = value.value(key, ordered_json::object());
  if (!arguments.is_object()) return std::nullopt;
  return ToolCall{value.at("name").get<std::string>(), arguments.dump()};
}

// A text that is read from its beginning. Each part is read or, where it is not there, nothing is.
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
  // Takes what stands before a mark, which is read too.
  std::optional<std::string_view> until(std::string_view mark) {
    const size_t at = rest_.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view before = rest_.substr(0, at);
    rest_ = base::stripped(rest_.substr(at + mark.size()));
    return before;
  }
  // Takes what stands between two marks, untouched.
  std::optional<std::string_view> between(std::string_view open, std::string_view close) {
    if (!rest_.starts_with(open)) return std::nullopt;
    rest_.remove_prefix(open.size());
    return until(close);
  }
  std::optional<std::string_view> json() {
    const size_t length = rest_.starts_with('{') || rest_.starts_with('[') ? json_length(rest_) : 0;
    if (length == 0) return std::nullopt;
    const std::string_view value = rest_.substr(0, length);
    rest_ = base::stripped(rest_.substr(length));
    return value;
  }

 private:
  std::string_view rest_;
};

// Objects or lists of them, which blanks and semicolons may divide.
std::vector<ToolCall> json_calls(std::string_view text) {
  std::vector<ToolCall> calls;
  for (Parts parts(text); !parts.empty();) {
    if (!calls.empty() && parts.skip(";")) continue;
    const auto written = parts.json();
    const auto value = written ? json_of(*written) : std::nullopt;
    if (!value) return {};
    for (const ordered_json& one : value->is_array() ? *value : ordered_json::array({*value})) {
      const std::optional<ToolCall> call = call_of(one);
      if (!call) return {};
      calls.push_back(*call);
    }
  }
  return calls;
}

// Names with an object of arguments behind each; a mark may stand ahead and between.
std::vector<ToolCall> named_calls(std::string_view text) {
  std::vector<ToolCall> calls;
  for (Parts parts(text); !parts.empty();) {
    parts.skip(call_mark_ahead(CallForm::kNamed));
    std::string_view name = parts.rest().substr(0, parts.rest().find('{'));
    parts.skip(name);
    const auto written = parts.json();
    const auto arguments = written ? json_of(*written) : std::nullopt;
    if (!arguments || !arguments->is_object()) return {};
    if (name = base::stripped(name); name.ends_with("[ARGS]")) name.remove_suffix(6);
    calls.push_back({std::string(base::stripped(name)), arguments->dump()});
  }
  return calls;
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
    const auto written = name ? call.json() : std::nullopt;
    const auto arguments = written ? json_of(*written) : std::nullopt;
    if (!arguments || !arguments->is_object()) return {};
    call.skip("```");
    if (!call.empty()) return {};
    calls.push_back({std::string(base::stripped(*name)), arguments->dump()});
  }
  return calls;
}

// The type of a function's parameter, "string" where nothing says one.
std::string type_of(const ordered_json& tools, std::string_view function, const std::string& key) {
  for (const ordered_json& tool : tools) {
    const ordered_json& one = tool.contains("function") ? tool.at("function") : tool;
    if (one.value("name", "") != function) continue;
    const auto pointer = ordered_json::json_pointer("/parameters/properties") / key / "type";
    return one.contains(pointer) && one.at(pointer).is_string() ? one.at(pointer).get<std::string>() : "string";
  }
  return "string";
}

void add_argument(ordered_json& arguments, const std::string& key, std::string_view value, const std::string& type) {
  const auto parsed = type == "string" ? std::nullopt : json_of(value);
  arguments[key] = parsed ? *parsed : ordered_json(value);
}

// A value stands on lines of its own.
std::string_view without_lines(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

std::vector<ToolCall> function_call(std::string_view text, const ordered_json& tools) {
  Parts parts(text);
  const auto name = parts.between("<function=", ">");
  if (!name) return {};
  ordered_json arguments = ordered_json::object();
  while (const auto parameter = parts.between("<parameter=", "</parameter>")) {
    const size_t end = parameter->find('>');
    if (end == std::string_view::npos) return {};
    const std::string key(parameter->substr(0, end));
    add_argument(arguments, key, without_lines(parameter->substr(end + 1)), type_of(tools, *name, key));
  }
  if (!parts.skip("</function>") || !parts.empty()) return {};
  return {{std::string(*name), arguments.dump()}};
}

std::vector<ToolCall> keys_call(std::string_view text, const ordered_json& tools) {
  Parts parts(text);
  const std::string_view all = parts.rest(), name = base::stripped(all.substr(0, all.find("<arg_key>")));
  parts.skip(name);
  ordered_json arguments = ordered_json::object();
  while (const auto key = parts.between("<arg_key>", "</arg_key>")) {
    const auto value = parts.between("<arg_value>", "</arg_value>");
    if (!value) return {};
    add_argument(arguments, std::string(*key), *value, type_of(tools, name, std::string(*key)));
  }
  if (!parts.empty()) return {};
  return {{std::string(name), arguments.dump()}};
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
    default:
      return {};
  }
}

std::string_view call_mark_ahead(CallForm form) {
  return form == CallForm::kObject ? "<|python_tag|>" : "[TOOL_CALLS]";
}

size_t json_length(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
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
    case CallForm::kNamed:
      return named_calls(body);
    default:
      return json_calls(body);
  }
}

}  // namespace collimate::text

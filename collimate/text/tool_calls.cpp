#include "collimate/text/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/stripped.h"

namespace collimate::text {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kOpenTag = "<tool_call>", kCloseTag = "</tool_call>", kListMark = "[TOOL_CALLS]";

// The length of the JSON value, an object or a list, that the text begins with; 0 where it does not end.
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

std::optional<ToolCall> call_of(const ordered_json& value) {
  if (!value.is_object() || !value.contains("name") || !value.at("name").is_string()) return std::nullopt;
  const char* key = value.contains("arguments") ? "arguments" : "parameters";
  const ordered_json arguments = value.value(key, ordered_json::object());
  if (!arguments.is_object()) return std::nullopt;
  return ToolCall{value.at("name").get<std::string>(), arguments.dump()};
}

// The calls that a text of JSON values holds, objects or lists of them, which blanks and semicolons may divide; none
// where it holds anything else.
std::vector<ToolCall> calls_of(std::string_view text) {
  std::vector<ToolCall> calls;
  while (!(text = base::stripped(text)).empty()) {
    if (text.front() == ';' && !calls.empty()) {
      text.remove_prefix(1);
      continue;
    }
    const size_t length = text.front() == '{' || text.front() == '[' ? json_length(text) : 0;
    if (length == 0) return {};
    ordered_json value;
    try {
      value = base::parse_ordered_json(text.substr(0, length), "a call");
    } catch (const base::InputError&) {  // a text that only looks like one
      return {};
    }
    for (const ordered_json& one : value.is_array() ? value : ordered_json::array({value})) {
      const std::optional<ToolCall> call = call_of(one);
      if (!call) return {};
      calls.push_back(*call);
    }
    text.remove_prefix(length);
  }
  return calls;
}

// How much of the end of `text` may be the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  for (size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (mark.starts_with(text.substr(text.size() - length))) return length;
  return 0;
}

}  // namespace

CallForm call_form_of(std::string_view text, std::string_view opening, std::string_view name) {
  const size_t at = text.find(name);
  const size_t begin = at == std::string_view::npos ? at : text.rfind('{', at);
  if (begin == std::string_view::npos) return CallForm::kUnknown;
  const size_t length = json_length(text.substr(begin));
  if (calls_of(text.substr(begin, length)).size() != 1) return CallForm::kUnknown;
  std::string_view before = base::stripped(text.substr(0, begin)), after = base::stripped(text.substr(begin + length));
  if (before.ends_with(kOpenTag) && after.starts_with(kCloseTag)) return CallForm::kTagged;
  if (before == base::stripped(opening)) return CallForm::kObject;
  if (!before.ends_with('[') || !after.starts_with(']')) return CallForm::kUnknown;
  before = base::stripped(before.substr(0, before.size() - 1));
  return before.ends_with(kListMark) ? CallForm::kList : CallForm::kUnknown;
}

bool CallReader::known(const std::vector<ToolCall>& calls) const {
  const auto is_known = [&](const ToolCall& call) { return std::ranges::find(names_, call.name) != names_.end(); };
  return !calls.empty() && std::ranges::all_of(calls, is_known);
}

// False where it is none.
bool CallReader::take_call(std::string_view json, Read& read) {
  std::vector<ToolCall> calls = calls_of(json);
  if (!known(calls)) return false;
  any_ = true;
  std::ranges::move(calls, std::back_inserter(read.calls));
  return true;
}

CallReader::Read CallReader::read(std::string_view text, bool last) {
  held_ += text;
  Read read;
  if (form_ == CallForm::kTagged)
    read_tagged(read, last);
  else
    read_alone(read, last);
  return read;
}

void CallReader::read_tagged(Read& read, bool last) {
  while (!held_.empty()) {
    const size_t open = held_.find(kOpenTag);
    const bool found = open != std::string::npos;
    std::string_view before = std::string_view(held_).substr(0, found ? open : held_.size() - begun(held_, kOpenTag));
    if (found && held_.find(kCloseTag, open) != std::string::npos) {
      const size_t close = held_.find(kCloseTag, open), begin = open + kOpenTag.size();
      const size_t end = close + kCloseTag.size();
      if (take_call(std::string_view(held_).substr(begin, close - begin), read)) {
        read.text += before.substr(0, before.find_last_not_of(base::kBlanks) + 1);
      } else {
        read.text += held_.substr(0, end);
      }
      held_.erase(0, end);
      continue;
    }
    if (last) {
      if (!any_ || !base::stripped(held_).empty()) read.text += held_;
      held_.clear();
      return;
    }
    // Blanks before what may be a call, and after one, are held as long as they may stand beside it.
    const size_t shown = before.find_last_not_of(base::kBlanks) + 1;
    read.text += before.substr(0, shown);
    held_.erase(0, shown);
    return;
  }
}

// The answer is a text or calls: its beginning says which it may be.
void CallReader::read_alone(Read& read, bool last) {
  std::string_view answer = base::stripped(held_);
  if (form_ == CallForm::kList && answer.starts_with(kListMark)) answer.remove_prefix(kListMark.size());
  const bool mark = form_ == CallForm::kList && kListMark.starts_with(answer);
  answer = base::stripped(answer);
  text_begun_ = text_begun_ || !(answer.empty() || mark || answer.front() == (form_ == CallForm::kList ? '[' : '{'));
  if (!text_begun_ && !last) return;
  if (text_begun_ || !take_call(answer, read)) read.text = held_;
  held_.clear();
}

}  // namespace collimate::text

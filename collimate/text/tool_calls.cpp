#include "collimate/text/tool_calls.h"

#include <algorithm>
#include <utility>

#include "collimate/base/stripped.h"

namespace collimate::text {
namespace {

// How much of the end of `text` may be the beginning of `mark`.
size_t begun(std::string_view text, std::string_view mark) {
  for (size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (mark.starts_with(text.substr(text.size() - length))) return length;
  return 0;
}

bool reads(CallForm form, std::string_view body, std::string_view name) {
  const std::vector<ToolCall> calls = calls_of(form, body, nlohmann::ordered_json::array());
  return calls.size() == 1 && calls[0].name == name;
}

bool stands_between_marks(CallForm form, std::string_view text, size_t at, std::string_view name) {
  const CallMarks marks = call_marks(form);
  const size_t open = text.rfind(marks.open, at), close = text.find(marks.close, at);
  if (open == std::string_view::npos || close == std::string_view::npos) return false;
  const size_t begin = open + marks.open.size();
  return reads(form, text.substr(begin, close - begin), name);
}

// The text up to the end of the first JSON value that begins with `bracket`.
std::string_view through_json(std::string_view text, char bracket) {
  const size_t at = std::min(text.find(bracket), text.size());
  return text.substr(0, at + json_length(text.substr(at)));
}

bool stands_behind_mark(CallForm form, std::string_view text, size_t at, std::string_view name) {
  const std::string_view mark = call_mark_ahead(form);
  const size_t ahead = text.rfind(mark, at);
  if (ahead == std::string_view::npos) return false;
  return reads(form, through_json(text.substr(ahead + mark.size()), form == CallForm::kList ? '[' : '{'), name);
}

bool stands_alone(std::string_view text, size_t at, std::string_view opening, std::string_view name) {
  const size_t begin = text.rfind('{', at);
  if (begin == std::string_view::npos) return false;
  const bool opens = base::stripped(text.substr(0, begin)) == base::stripped(opening);
  return opens && reads(CallForm::kObject, through_json(text.substr(begin), '{'), name);
}

}  // namespace

CallForm call_form_of(std::string_view text, std::string_view opening, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return CallForm::kUnknown;
  for (const CallForm form : {CallForm::kTagged, CallForm::kFunction, CallForm::kKeys, CallForm::kDeepSeek})
    if (stands_between_marks(form, text, at, name)) return form;
  for (const CallForm form : {CallForm::kList, CallForm::kNamed, CallForm::kObject})
    if (stands_behind_mark(form, text, at, name)) return form;
  return stands_alone(text, at, opening, name) ? CallForm::kObject : CallForm::kUnknown;
}

CallReader::CallReader(CallForm form, nlohmann::ordered_json tools) : form_(form), tools_(std::move(tools)) {
  for (const auto& tool : tools_)
    names_.push_back((tool.contains("function") ? tool.at("function") : tool).value("name", ""));
}

bool CallReader::known(const std::vector<ToolCall>& calls) const {
  const auto is_known = [&](const ToolCall& call) { return std::ranges::find(names_, call.name) != names_.end(); };
  return !calls.empty() && std::ranges::all_of(calls, is_known);
}

// False where it is none.
bool CallReader::take_call(std::string_view body, Read& read) {
  std::vector<ToolCall> calls = calls_of(form_, body, tools_);
  if (!known(calls)) return false;
  any_ = true;
  std::ranges::move(calls, std::back_inserter(read.calls));
  return true;
}

CallReader::Read CallReader::read(std::string_view text, bool last) {
  held_ += text;
  Read read;
  if (!call_marks(form_).open.empty())
    read_tagged(read, last);
  else
    read_alone(read, last);
  return read;
}

void CallReader::read_tagged(Read& read, bool last) {
  const auto [open_tag, close_tag] = call_marks(form_);
  while (!held_.empty()) {
    const size_t open = held_.find(open_tag);
    const bool found = open != std::string::npos;
    std::string_view before = std::string_view(held_).substr(0, found ? open : held_.size() - begun(held_, open_tag));
    if (found && held_.find(close_tag, open) != std::string::npos) {
      const size_t close = held_.find(close_tag, open), begin = open + open_tag.size();
      const size_t end = close + close_tag.size();
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

// Whether calls may begin so, in a form whose calls stand alone.
bool CallReader::may_begin(std::string_view answer) const {
  const std::string_view mark = call_mark_ahead(form_);
  if (mark.starts_with(answer)) return true;
  if (answer.starts_with(mark)) answer = base::stripped(answer.substr(mark.size()));
  const auto begins = [&](const std::string& name) { return name.starts_with(answer) || answer.starts_with(name); };
  if (form_ == CallForm::kNamed) return std::ranges::any_of(names_, begins);
  return answer.empty() || answer.front() == (form_ == CallForm::kList ? '[' : '{');
}

// The answer is a text or calls: its beginning says which it may be.
void CallReader::read_alone(Read& read, bool last) {
  std::string_view answer = base::stripped(held_);
  text_begun_ = text_begun_ || !may_begin(answer);
  if (!text_begun_ && !last) return;
  const std::string_view mark = call_mark_ahead(form_);
  if (answer.starts_with(mark)) answer.remove_prefix(mark.size());
  if (text_begun_ || !take_call(answer, read)) read.text = held_;
  held_.clear();
}

}  // namespace collimate::text

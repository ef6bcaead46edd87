#include "collimate/text/tool_calls.h"

#include <algorithm>
#include <utility>

#include "collimate/base/stripped.h"

namespace collimate::text {
namespace {

bool is_list(CallForm form) { return form == CallForm::kList || form == CallForm::kFunctools; }

// Returns whether one of the two begins with the other, so that `text` is the mark or may become it.
bool may_be(std::string_view text, std::string_view mark) { return mark.starts_with(text) || text.starts_with(mark); }

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

// Returns the text up to the end of the first JSON value that begins with `bracket`.
std::string_view through_json(std::string_view text, char bracket) {
  const size_t at = std::min(text.find(bracket), text.size());
  return text.substr(0, at + json_length(text.substr(at)));
}

bool stands_behind_mark(CallForm form, std::string_view text, size_t at, std::string_view name) {
  const std::string_view mark = call_mark_ahead(form);
  const size_t ahead = text.rfind(mark, at);
  if (ahead == std::string_view::npos) return false;
  return reads(form, through_json(text.substr(ahead + mark.size()), is_list(form) ? '[' : '{'), name);
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
  for (const CallForm form : {CallForm::kTagged, CallForm::kFunction, CallForm::kKeys, CallForm::kDeepSeek,
                              CallForm::kPhi, CallForm::kGemma, CallForm::kPython, CallForm::kHarmony})
    if (stands_between_marks(form, text, at, name)) return form;
  for (const CallForm form : {CallForm::kList, CallForm::kFunctools, CallForm::kNamed, CallForm::kObject})
    if (stands_behind_mark(form, text, at, name)) return form;
  return stands_alone(text, at, opening, name) ? CallForm::kObject : CallForm::kUnknown;
}

std::vector<int32_t> call_token_ids(CallForm form, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string_view mark : call_tokens(form)) {
    const std::optional<int32_t> id = tokenizer.id_of(mark);
    if (id && tokenizer.is_special(*id)) ids.push_back(*id);
  }
  return ids;
}

CallReader::CallReader(CallForm form, nlohmann::ordered_json tools, bool thinking)
    : form_(form),
      tools_(std::move(tools)),
      names_(tool_names(tools_)),
      harmony_(names_),
      mark_(call_marks(form).open),
      alone_(mark_.empty()),
      begins_(alone_),
      thinking_(thinking),
      begun_(thinking) {
  if (alone_) mark_ = call_mark_ahead(form);
}

// Reads the calls in a body; returns false where it holds none, or one of another function than those of the tools.
bool CallReader::take_call(std::string_view body, Read& read) {
  std::vector<ToolCall> calls = calls_of(form_, body, tools_);
  if (!call_only(calls, names_)) return false;
  any_ = true;
  std::ranges::move(calls, std::back_inserter(read.calls));
  return true;
}

void CallReader::show(size_t size, Read& read) {
  read.text += std::string_view(held_).substr(0, size);
  held_.erase(0, size);
}

CallReader::Read CallReader::read(std::string_view text, bool last) {
  if (form_ == CallForm::kHarmony) return harmony_.read(text, last);
  held_ += text;
  Read read;
  if (!show_thoughts(read, last)) read_calls(read, last);
  if (last && !(any_ && base::stripped(held_).empty())) show(held_.size(), read);
  return read;
}

// Shows the thoughts at the beginning; returns false once they, if there are any, have ended.
bool CallReader::show_thoughts(Read& read, bool last) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  const std::string_view answer = base::stripped(held_);
  if (!begun_ && !last && kOpen.starts_with(answer)) return true;
  if (!begun_) thinking_ = answer.starts_with(kOpen);
  begun_ = true;
  if (!thinking_) return false;
  const size_t close = held_.find(kClose);
  thinking_ = close == std::string::npos;
  show(thinking_ ? held_.size() - (last ? 0 : begun_size(held_, kClose)) : close + kClose.size(), read);
  return thinking_;
}

// Shows the text before a mark, but for blanks, which may stand beside a call. Returns false where there is no mark.
bool CallReader::show_text(Read& read) {
  const size_t mark = held_.find(mark_);
  begins_ = mark != std::string::npos;
  const std::string_view before =
      std::string_view(held_).substr(0, begins_ ? mark : held_.size() - begun_size(held_, mark_));
  show(before.find_last_not_of(base::kBlanks) + 1, read);
  return begins_;
}

void CallReader::read_calls(Read& read, bool last) {
  while (begins_ || show_text(read)) {
    const std::string_view between = any_ && form_ == CallForm::kObject ? "; \t\r\n" : base::kBlanks;
    const size_t begin = std::min(held_.find_first_not_of(between), held_.size());
    const std::string_view rest = std::string_view(held_).substr(begin);
    if (!last && std::string_view(mark_).starts_with(rest)) return;
    const size_t marked = rest.starts_with(mark_) ? mark_.size() : 0;
    const std::optional<Place> place = place_of_call(rest.substr(marked), last);
    if (!place && !last) return;
    begins_ = alone_;
    if (place && take_call(rest.substr(marked, place->body), read)) {
      held_.erase(0, begin + marked + place->end);
      continue;
    }
    begins_ = false;
    if (marked > 0) show(begin + marked, read);
  }
}

// Returns the place of a call: an empty one where the text begins with no call, nothing where that is not known yet.
std::optional<CallReader::Place> CallReader::place_of_call(std::string_view text, bool last) const {
  const std::string_view begin = text.substr(std::min(text.find_first_not_of(base::kBlanks), text.size()));
  const size_t blanks = text.size() - begin.size(), brace = begin.find('{');
  if (alone_ && !may_begin(begin)) return Place{};
  if (alone_) {
    const size_t name = form_ == CallForm::kNamed ? std::min(brace, begin.size()) : 0;
    const size_t json = json_length(begin.substr(name)), end = blanks + name + json;
    return json == 0 ? std::nullopt : std::optional(Place{end, end});
  }
  const std::string_view close = call_marks(form_).close;
  size_t at = text.find(close);
  if ((form_ == CallForm::kTagged || form_ == CallForm::kPhi) && at != std::string_view::npos &&
      (begin.starts_with('{') || begin.starts_with('['))) {
    const size_t json = json_length(begin);
    if (json > 0 || !last) at = json > 0 ? text.find(close, blanks + json) : std::string_view::npos;
  }
  return at == std::string_view::npos ? std::nullopt : std::optional(Place{at, at + close.size()});
}

// Returns whether a call may begin with the text, in a form without marks around it.
bool CallReader::may_begin(std::string_view text) const {
  if (text.empty()) return true;
  if (form_ != CallForm::kNamed) return text.front() == (is_list(form_) ? '[' : '{');
  return std::ranges::any_of(names_, [&](const std::string& name) {
    if (!text.starts_with(name)) return name.starts_with(text);
    const std::string_view behind = base::stripped(text.substr(name.size()));
    return behind.starts_with('{') || may_be(behind, kArgumentsMark) || may_be(behind, kIdMark);
  });
}

}  // namespace collimate::text

#include "collimate/text/harmony.h"

#include <algorithm>
#include <utility>

#include "collimate/base/stripped.h"

namespace collimate::text {
namespace harmony {
namespace {

// Returns the word behind a mark, up to a blank or another mark.
std::string_view word_behind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + mark.size());
  return rest.substr(0, std::min(rest.find_first_of(base::kBlanks), rest.find("<|")));
}

}  // namespace

Header header_of(std::string_view text) {
  const std::string_view role = text.substr(0, std::min(text.find(kRecipient), text.find("<|")));
  return {base::stripped(role), word_behind(text, kChannel), word_behind(text, kRecipient)};
}

std::string Header::function() const {
  constexpr std::string_view kFunctions = "functions.";
  return std::string(recipient.starts_with(kFunctions) ? recipient.substr(kFunctions.size()) : recipient);
}

}  // namespace harmony

size_t begun_size(std::string_view text, std::string_view mark) {
  for (size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (mark.starts_with(text.substr(text.size() - length))) return length;
  return 0;
}

namespace {

constexpr std::string_view kEnds[] = {harmony::kEnd, harmony::kCall, harmony::kReturn, harmony::kStart};

// Returns where a content ends, and the length of the mark that ends it; the mark of a next message is not part of it.
std::pair<size_t, size_t> end_of(std::string_view text) {
  std::pair<size_t, size_t> end{text.size(), 0};
  for (const std::string_view mark : kEnds)
    if (const size_t at = text.find(mark); at < end.first) end = {at, mark == harmony::kStart ? 0 : mark.size()};
  return end;
}

size_t begun_end(std::string_view text) {
  size_t size = 0;
  for (const std::string_view mark : kEnds) size = std::max(size, begun_size(text, mark));
  return size;
}

}  // namespace

AnswerPart HarmonyReader::read(std::string_view text, bool last) {
  held_ += text;
  AnswerPart part;
  bool goes_on = true;
  while (goes_on) {
    if (place_ == Place::kBeginning || place_ == Place::kBetween)
      goes_on = find_message(part, last);
    else if (place_ == Place::kHeader)
      goes_on = read_header(part, last);
    else
      goes_on = read_content(part, last);
  }
  return part;
}

std::string HarmonyReader::take(size_t size) {
  std::string taken = held_.substr(0, size);
  held_.erase(0, size);
  return taken;
}

// Shows what stands between messages. The first header lacks its beginning, which the prompt has.
bool HarmonyReader::find_message(AnswerPart& part, bool last) {
  if (place_ == Place::kBeginning) {
    for (const std::string_view mark : {harmony::kChannel, harmony::kRecipient, harmony::kMessage}) {
      if (held_.starts_with(mark)) place_ = Place::kHeader;
      if (!last && mark.starts_with(held_)) return false;
    }
    if (place_ == Place::kHeader) return true;
    place_ = Place::kBetween;
  }
  const size_t start = held_.find(harmony::kStart);
  if (start == std::string::npos) {
    part.text += take(held_.size() - (last ? 0 : begun_size(held_, harmony::kStart)));
    return false;
  }
  part.text += take(start);
  header_ = take(harmony::kStart.size());
  place_ = Place::kHeader;
  return true;
}

bool HarmonyReader::read_header(AnswerPart& part, bool last) {
  const size_t end = held_.find(harmony::kMessage);
  if (end == std::string::npos) {
    if (last) part.text += std::exchange(header_, {}) + take(held_.size());
    return false;
  }
  const bool first = header_.empty();
  const std::string header = take(end);
  place_ = place_of(harmony::header_of(first ? "assistant" + header : header));
  header_ += header + take(harmony::kMessage.size());
  opens_ = true;
  return true;
}

HarmonyReader::Place HarmonyReader::place_of(const harmony::Header& header) const {
  if (!header.recipient.empty() || header.role != "assistant") return Place::kWhole;
  if (header.channel == "analysis") return Place::kThoughts;
  return header.channel.empty() || header.channel == "final" || header.channel == "commentary" ? Place::kContent
                                                                                               : Place::kWhole;
}

// Puts a message's first text on a line of its own behind an earlier message's.
void HarmonyReader::add_line(std::string& out, bool& said, std::string_view text) {
  if (text.empty()) return;
  if (std::exchange(opens_, false) && std::exchange(said, true)) out += '\n';
  out += text;
}

bool HarmonyReader::read_content(AnswerPart& part, bool last) {
  const auto [end, mark] = end_of(held_);
  const bool ends = last || end < held_.size();
  if (place_ == Place::kWhole && !ends) return false;
  const std::string content = take(ends ? end : held_.size() - begun_end(held_));
  if (place_ == Place::kThoughts) add_line(part.thoughts, thought_, content);
  if (place_ == Place::kContent) add_line(part.text, said_, content);
  if (!ends) return false;
  const std::string closing = take(mark);
  if (place_ == Place::kWhole) {
    const std::vector<ToolCall> calls = calls_of(CallForm::kHarmony, header_ + content, {});
    if (call_only(calls, names_)) {
      any_ = true;
      part.calls.insert(part.calls.end(), calls.begin(), calls.end());
    } else {
      add_line(part.text, said_, header_ + content + closing);
    }
  }
  header_.clear();
  place_ = Place::kBetween;
  return !held_.empty();
}

}  // namespace collimate::text

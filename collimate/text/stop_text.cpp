#include "collimate/text/stop_text.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

// Returns how many bytes of `text` are matched after `c`, where `length` bytes were matched before it.
size_t extend(const std::string& text, const std::vector<size_t>& border, size_t length, char c) {
  while (length > 0 && text[length] != c) length = border[length - 1];
  return text[length] == c ? length + 1 : 0;
}

}  // namespace

StopText::StopText(const std::vector<std::string>& stops) {
  for (const std::string& text : stops) {
    COLLIMATE_CHECK(!text.empty(), "an empty stop string");
    Stop stop{text, {0}};
    for (size_t i = 1; i < text.size(); ++i)
      stop.border.push_back(extend(text, stop.border, stop.border.back(), text[i]));
    stops_.push_back(std::move(stop));
  }
}

// Returns true when `c` completes the stop string; the search goes on from its longest border.
bool StopText::Stop::advance(char c) {
  length = extend(text, border, length, c);
  if (length < text.size()) return false;
  length = border.back();
  return true;
}

size_t StopText::advance(char c) {
  size_t longest = 0;
  for (Stop& stop : stops_) {
    if (stop.advance(c)) longest = std::max(longest, stop.text.size());
  }
  return longest;
}

std::string StopText::push(std::string_view piece, bool may_stop) {
  if (matched_) return {};
  for (const char c : piece) {
    held_ += c;
    const size_t stop = advance(c);
    if (stop == 0 || !may_stop) continue;
    matched_ = true;
    held_.resize(held_.size() - stop);
    return std::exchange(held_, {});
  }
  size_t held = 0;
  for (const Stop& stop : stops_) held = std::max(held, stop.length);
  std::string certain = held_.substr(0, held_.size() - held);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopText::finish() {
  for (Stop& stop : stops_) stop.length = 0;
  return std::exchange(held_, {});
}

}  // namespace collimate::text

#include "collimate/serve/stop_text.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::serve {

StopText::StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) COLLIMATE_CHECK(!stop.empty());
}

std::string StopText::push(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t after = at + stop.size();
    if (after < end || (after == end && at < begin)) std::tie(begin, end) = std::pair(at, after);
  }
  if (end != std::string::npos) {
    found_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }
  const size_t certain = held_.size() - held_length();
  std::string out = held_.substr(0, certain);
  held_.erase(0, certain);
  return out;
}

// The longest end of what is held that begins a stop string.
size_t StopText::held_length() const {
  size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(held_.size(), stop.size() - 1); length > longest; --length) {
      if (held_.ends_with(std::string_view(stop).substr(0, length))) longest = length;
    }
  }
  return longest;
}

std::string StopText::finish() { return std::exchange(held_, {}); }

}  // namespace collimate::serve

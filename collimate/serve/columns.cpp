#include "collimate/serve/columns.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/text/utf8.h"

namespace collimate::serve {
namespace {

constexpr const char* kBetween = " | ";

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const size_t length = text::utf8_length(text);
    width += length == 0 ? 1 : text::character_width(text::utf8_code_point(text));
    text.remove_prefix(std::max<size_t>(1, length));
  }
  return width;
}

Columns::Columns(int width) : half_((std::max(width, 20) - 3) / 2) {}

std::string Columns::push(int side, std::string_view text) {
  wrap(base::at(sides_, side), text);
  return take_rows();
}

std::string Columns::finish(int side) {
  Side& finished = base::at(sides_, side);
  finished.finished = true;
  if (!finished.last.empty()) finished.lines.push_back(std::exchange(finished.last, {}));
  return take_rows();
}

void Columns::wrap(Side& side, std::string_view text) const {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<size_t>(1, text::utf8_length(text)));
    text.remove_prefix(character.size());
    if (character == "\n") {
      side.lines.push_back(std::exchange(side.last, {}));
      continue;
    }
    if (display_width(side.last) + display_width(character) > half_) break_line(side);
    if (character != " " || !side.last.empty() || side.lines.empty()) side.last += character;
  }
}

// Ends a full line at its last space; what follows the space begins the next line.
void Columns::break_line(Side& side) const {
  const size_t space = side.last.rfind(' ');
  std::string rest = space == std::string::npos ? "" : side.last.substr(space + 1);
  side.last.resize(std::min(space, side.last.size()));
  side.lines.push_back(std::exchange(side.last, std::move(rest)));
}

std::string Columns::take_rows() {
  std::string out;
  const auto ready = [](const Side& side) { return !side.lines.empty() || side.finished; };
  const auto any = [](const Side& side) { return !side.lines.empty(); };
  const auto take = [](Side& side) {
    if (side.lines.empty()) return std::string();
    std::string line = std::move(side.lines.front());
    side.lines.erase(side.lines.begin());
    return line;
  };
  while (ready(sides_[0]) && ready(sides_[1]) && (any(sides_[0]) || any(sides_[1]))) {
    const std::string left = take(sides_[0]), right = take(sides_[1]);
    std::string row =
        left + std::string(static_cast<size_t>(std::max(0, half_ - display_width(left))), ' ') + kBetween + right;
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  }
  return out;
}

}  // namespace collimate::serve

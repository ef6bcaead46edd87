#include "collimate/plan/show/columns.h"

#include <algorithm>

#include "collimate/base/characters.h"

namespace collimate::plan {
namespace {

constexpr int kLeastRoom = 24;      // characters that words beside a head need at least
constexpr size_t kIndentBelow = 6;  // of words that stand below it

std::string without_end(const std::string& line) { return line.substr(0, line.find_last_not_of(' ') + 1); }

std::vector<std::string> words_in(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = text.find_first_not_of(' '); begin != std::string::npos;) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end);
  }
  return words;
}

}  // namespace

int width_of(const std::string& text) { return static_cast<int>(base::characters_in(text)); }

std::string cut_to(const std::string& text, int columns) {
  if (width_of(text) <= columns) return text;
  std::string kept;
  int left = columns - 1;
  for (const char c : text) {
    if (base::begins_character(c) && left-- <= 0) break;
    kept += c;
  }
  return kept + "…";
}

std::string hanging(const std::string& head, const std::vector<std::string>& words, int columns,
                    const std::string& between) {
  const int beside = width_of(head);
  int widest = kLeastRoom;
  for (const std::string& word : words) widest = std::max(widest, width_of(word));
  const bool below = beside > static_cast<int>(kIndentBelow) && !words.empty() && columns - beside < widest;
  const std::string indent(below ? kIndentBelow : static_cast<size_t>(beside), ' ');
  std::string text = below ? without_end(head) + "\n" : "", line = below ? indent : head;
  bool fresh = true;  // no word stands on the line yet
  for (const std::string& word : words) {
    if (!fresh && width_of(line + between + word) > columns) {
      text += without_end(line) + "\n";
      line = indent;
      fresh = true;
    }
    line += (fresh ? "" : between) + word;
    fresh = false;
  }
  return text + without_end(line) + "\n";
}

std::string hanging(const std::string& head, const std::string& text, int columns) {
  return hanging(head, words_in(text), columns);
}

}  // namespace collimate::plan

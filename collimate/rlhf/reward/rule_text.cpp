#include "collimate/rlhf/reward/rule_text.h"

#include <fmt/format.h>

#include <cctype>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

bool digit_at(std::string_view text, size_t i) {
  return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
}

// Returns whether a number without a sign begins at i.
bool number_at(std::string_view text, size_t i) {
  if (digit_at(text, i)) return true;
  if (i >= text.size() || text[i] != '.' || !digit_at(text, i + 1)) return false;
  return i == 0 || (std::isalnum(static_cast<unsigned char>(text[i - 1])) == 0 && text[i - 1] != '.');
}

// Returns how many bytes the currency sign at i has; 0 without one.
size_t currency_at(std::string_view text, size_t i) {
  for (const std::string_view sign : {"$", "€", "£", "¥"})
    if (i < text.size() && text.substr(i).starts_with(sign)) return sign.size();
  return 0;
}

// Returns where the digits of a number begin whose sign is at i, or i + 1. In "$3-$5" there is a dash, no sign.
size_t behind_sign(std::string_view text, size_t i) {
  const bool joins = i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
  return i + 1 + (joins ? 0 : currency_at(text, i + 1));
}

}  // namespace

std::string text_field(const RewardSample& sample, const std::string& field) {
  const auto found = sample.example.find(field);
  if (found == sample.example.end() || found->is_null())
    throw base::InputError(
        base::expectation("reward", "a column \"" + field + "\" in the row", "none",
                          fmt::format("rows that have it (a data set's columns: {{THEIRS: {}}} renames "
                                      "one), or another rule",
                                      field)));
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string final_number(const std::string& text) {
  const size_t marker = text.rfind("####");
  const std::string tail = marker == std::string::npos ? text : text.substr(marker + 4);
  std::string best;
  for (size_t i = 0; i < tail.size();) {
    const bool minus = tail[i] == '-';
    const size_t first = minus ? behind_sign(tail, i) : i;
    if (!number_at(tail, first)) {
      ++i;
      continue;
    }
    std::string number = minus ? "-" : "";
    number += tail[first];
    i = first + 1;
    while (digit_at(tail, i) || (i < tail.size() && (tail[i] == ',' || tail[i] == '.'))) number += tail[i++];
    std::erase(number, ',');
    while (number.ends_with('.')) number.pop_back();
    best = number;
    if (marker != std::string::npos) break;
  }
  return best;
}

}  // namespace collimate::rlhf

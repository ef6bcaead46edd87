#include "collimate/plan/published/text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <regex>

namespace collimate::plan::published {
namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
}

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::optional<std::vector<std::string>> groups_of(const std::string& text, const std::regex& expression) {
  std::smatch found;
  if (!std::regex_search(text, found, expression)) return std::nullopt;
  return std::vector<std::string>(found.begin() + 1, found.end());
}

// A model of the table whose name ends with the text: `30B-A3B` is one of them only.
const shape::Outline* by_ending(const std::string& text) {
  const std::string wanted = lower(text);
  if (wanted.size() < 6) return nullptr;
  for (const std::string& name : shape::outline_names())
    if (name.ends_with(wanted)) return shape::outline_named(name);
  return nullptr;
}

}  // namespace

bool has(std::string_view text, std::string_view word) { return lower(text).find(lower(word)) != std::string::npos; }

bool has_word(std::string_view text, std::string_view word) {
  const std::string in = lower(text), wanted = lower(word);
  for (size_t at = in.find(wanted); at != std::string::npos; at = in.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    const bool begins = at == 0 || !is_letter(in[at - 1]), ends = end == in.size() || !is_letter(in[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::optional<std::vector<std::string>> match(const std::string& text, const char* pattern) {
  return groups_of(text, std::regex(pattern, std::regex::icase));
}

std::optional<std::vector<std::string>> match_case(const std::string& text, const char* pattern) {
  return groups_of(text, std::regex(pattern));
}

std::optional<double> finite(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end == text.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  return value;
}

double number(const std::string& text, const char* pattern, double fallback) {
  const auto found = match(text, pattern);
  return found && !(*found)[0].empty() ? std::strtod((*found)[0].c_str(), nullptr) : fallback;
}

int whole(const std::string& text) {
  const double value = finite(text).value_or(0);
  return value >= 0 && value <= kMostDevices ? static_cast<int>(value) : kMostDevices + 1;
}

std::optional<shape::Outline> model_of(const std::string& text) {
  std::vector<std::string> names = {text};
  if (const auto parts = match(text, R"(^\s*([^(]*?)\s*\(([^)\s]*)[^)]*\)\s*$)")) {
    const std::string outside = (*parts)[0], inside = (*parts)[1];
    names = {inside, inside + outside, outside + inside, outside};
  }
  for (const std::string& name : names)
    if (const shape::Outline* known = shape::outline_named(name)) return *known;
  for (const std::string& name : names)
    if (const shape::Outline* known = by_ending(name)) return *known;
  const auto size = match(text, R"(^\s*([0-9.]+)\s*[bB]?\s*(\(.*)?$)");
  if (!size) return std::nullopt;
  const shape::Outline* dense = shape::dense_outline(std::strtod((*size)[0].c_str(), nullptr));
  if (dense == nullptr) return std::nullopt;
  return *dense;
}

}  // namespace collimate::plan::published

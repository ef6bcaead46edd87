#include "collimate/plan/published/text.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

namespace collimate::plan::published {
namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
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

std::optional<std::vector<std::string>> match(const std::string& text, const char* pattern) {
  const std::regex expression(pattern, std::regex::icase);
  std::smatch found;
  if (!std::regex_search(text, found, expression)) return std::nullopt;
  return std::vector<std::string>(found.begin() + 1, found.end());
}

double number(const std::string& text, const char* pattern, double fallback) {
  const auto found = match(text, pattern);
  return found && !(*found)[0].empty() ? std::strtod((*found)[0].c_str(), nullptr) : fallback;
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

#include "collimate/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

std::string place(std::string_view text, size_t offset, const std::string& where, int64_t first_line) {
  if (first_line == 0) return where;
  const std::string_view before = text.substr(0, offset);
  return fmt::format("{}:{}", where, first_line + std::count(before.begin(), before.end(), '\n'));
}

// Offset of the bracket that opens the first level too many, or npos.
size_t too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if ((c == '{' || c == '[') && ++depth > kMaxJsonDepth) {
      return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::string_view::npos;
}

// Describes the place where the text stops being JSON; `byte` is the parser's count of bytes, 0 where it has none.
std::string found_at(std::string_view text, size_t byte) {
  constexpr size_t kShownBytes = 20;
  if (byte == 0) return "a number that is too large";
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "an empty text";
  if (byte > text.size()) return "a text that ends before its value does";
  const size_t newline = text.rfind('\n', byte - 1);
  const size_t begin = newline == std::string_view::npos || newline + 1 > byte - 1 ? 0 : newline + 1;
  const size_t shown = byte - begin > kShownBytes ? byte - kShownBytes : begin;
  const nlohmann::json excerpt(std::string(text.substr(shown, byte - shown)));
  return fmt::format("something else at column {}, where {}{} ends", byte - begin, shown > begin ? "…" : "",
                     excerpt.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

template <class Json>
Json parse(std::string_view text, const std::string& where, int64_t first_line) {
  if (const size_t at = too_deep(text); at != std::string_view::npos)
    throw InputError(expectation(place(text, at, where, first_line),
                                 fmt::format("JSON of at most {} levels", kMaxJsonDepth), "deeper nesting"));
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& error) {
    const auto* parse_error = dynamic_cast<const typename Json::parse_error*>(&error);
    const size_t at = parse_error == nullptr ? 0 : parse_error->byte;
    throw InputError(expectation(place(text, at, where, first_line), "well-formed JSON", found_at(text, at)));
  }
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where, int64_t first_line) {
  return parse<nlohmann::json>(text, where, first_line);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where, int64_t first_line) {
  return parse<nlohmann::ordered_json>(text, where, first_line);
}

}  // namespace collimate::base

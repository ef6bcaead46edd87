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
    throw InputError(expectation(place(text, at, where, first_line), "well-formed JSON", error.what()));
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

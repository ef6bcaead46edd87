#include "collimate/text/json_elements.h"

#include "collimate/base/error.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

constexpr const char* kSpaces = " \t\r\n";

[[noreturn]] void malformed(const std::string& path, std::string_view content, size_t at, const std::string& wanted) {
  const std::string got = at < content.size() ? fmt::format("'{}'", content.substr(at, 1)) : "the end of the file";
  throw base::InputError(base::expectation(fmt::format("{}:{}", path, line_at(content, at)), wanted, got));
}

size_t skip_string(std::string_view content, size_t at) {
  for (++at; at < content.size(); ++at) {
    if (content[at] == '\\') {
      ++at;
    } else if (content[at] == '"') {
      return at + 1;
    }
  }
  return content.size();
}

// Returns the end of the value that starts at `at`: the comma or bracket after it at the same depth.
size_t skip_value(std::string_view content, size_t at) {
  int depth = 0;
  while (at < content.size()) {
    const char c = content[at];
    if (c == '"') {
      at = skip_string(content, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == ']')) return at;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++at;
  }
  return at;
}

}  // namespace

void for_each_element(const std::string& path, std::string_view content,
                      const std::function<void(size_t begin, size_t end)>& element) {
  size_t at = std::min(content.find_first_not_of(kSpaces), content.size());
  if (at >= content.size() || content[at] != '[') malformed(path, content, at, "a JSON array");
  at = content.find_first_not_of(kSpaces, at + 1);
  bool more = at != std::string::npos && content[at] != ']';
  while (more) {
    const size_t begin = std::min(content.find_first_not_of(kSpaces, at), content.size());
    const size_t end = skip_value(content, begin);
    if (end >= content.size()) malformed(path, content, end, "',' or ']' after an element");
    if (end == begin) malformed(path, content, end, "an element");
    element(begin, end);
    more = content[end] == ',';
    at = more ? end + 1 : end;
  }
  if (at == std::string::npos) malformed(path, content, content.size(), "']'");
  at = content.find_first_not_of(kSpaces, at + 1);
  if (at != std::string::npos) malformed(path, content, at, "nothing after the array");
}

}  // namespace collimate::text

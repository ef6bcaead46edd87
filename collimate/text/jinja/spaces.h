#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

// White space and line ends as Python's texts have them, in UTF-8.
namespace collimate::text::jinja {

using IsKind = std::function<bool(std::string_view character)>;

// str.isspace() of one character.
bool is_space(std::string_view character);
bool is_no_space(std::string_view character);
// Where the characters of a kind end that begin at `at`, and where those begin that end at `end`.
size_t skip(std::string_view text, size_t at, const IsKind& is_kind);
size_t skip_back(std::string_view text, size_t end, const IsKind& is_kind);
// str.strip()
std::string_view stripped(std::string_view text);
// str.splitlines(): each line, with its end where these are kept.
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);

}  // namespace collimate::text::jinja

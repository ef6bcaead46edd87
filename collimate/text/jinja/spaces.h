#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

// These functions know white space and line ends as Python's texts do, in UTF-8.
namespace collimate::text::jinja {

using IsKind = std::function<bool(std::string_view character)>;

// Returns str.isspace() of one character.
bool is_space(std::string_view character);
bool is_no_space(std::string_view character);
// The first returns where the run of characters of a kind ends that begins at `at`, the second where the run begins
// that ends at `end`.
size_t skip(std::string_view text, size_t at, const IsKind& is_kind);
size_t skip_back(std::string_view text, size_t end, const IsKind& is_kind);
// Returns str.strip().
std::string_view stripped(std::string_view text);
// Returns str.splitlines(): each line, with its end where `keep_ends`.
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);

}  // namespace collimate::text::jinja

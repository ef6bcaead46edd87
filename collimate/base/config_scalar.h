#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::base {

// Plain scalars by the core rules of YAML 1.2; nothing when `text` as a whole is not one.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // ".inf" and ".nan" are numbers, "inf" is a word

// The shortest text that reads back as the same number, with a point or exponent.
std::string number_text(double value);

}  // namespace collimate::base

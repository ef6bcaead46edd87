#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::base {

// These parse plain scalars and return nothing when `text` as a whole is not one. Unlike YAML 1.2's core rules they
// accept no sign "+" before digits and no integers in base 8 or 16: "+5", "0o7", "0x10" and "inf" are texts; "1e+4",
// ".5", ".inf" and ".nan" are numbers.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// Returns the shortest text that reads back as the same number and has a point or an exponent.
std::string number_text(double value);

}  // namespace collimate::base

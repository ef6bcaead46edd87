#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::base {

// Plain scalars; nothing when `text` as a whole is not one. Of YAML 1.2's core rules they lack a sign "+" before
// digits and integers in base 8 and 16: "+5", "0o7" and "0x10" are texts, as "inf" is; "1e+4", ".5", ".inf" and ".nan"
// are numbers.
std::optional<bool> parse_bool(std::string_view text);
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// The shortest text that reads back as the same number, with a point or exponent.
std::string number_text(double value);

}  // namespace collimate::base

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace collimate::base {

// Text may nest JSON up to this depth. Copying and writing JSON recurse, so deeper text could overflow the stack.
constexpr int kMaxJsonDepth = 200;

// Parses text that a user gives as JSON. Throws InputError for malformed text, for more than kMaxJsonDepth levels and
// for an object that has a key twice. The error names `where`, or "where:LINE" when `first_line`, the line on which
// `text` begins, is not 0.
nlohmann::json parse_json(std::string_view text, const std::string& where, int64_t first_line = 0);
// Does the same and keeps the keys in written order. An object may have at most 10,000 keys.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where, int64_t first_line = 0);

}  // namespace collimate::base

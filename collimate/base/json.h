#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace collimate::base {

// Nesting that is read from text; copying and writing JSON recurse, so deeper text could overflow the stack.
constexpr int kMaxJsonDepth = 200;

// Text that a user gives as JSON. InputError for malformed text, for more than kMaxJsonDepth levels and for an object
// with a key twice, naming `where`, or "where:LINE" when `first_line`, the line on which `text` begins, is not 0.
nlohmann::json parse_json(std::string_view text, const std::string& where, int64_t first_line = 0);
// This one keeps the keys in the order written.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where, int64_t first_line = 0);

}  // namespace collimate::base

#pragma once

#include <string>

namespace collimate::base {

// The number within the limits that is nearest to the one that `text` is, as text; `otherwise` where it is none.
// `whole`: rounded.
std::string nearest_number(const std::string& text, double low, double high, const std::string& otherwise = "",
                           bool whole = false);

}  // namespace collimate::base

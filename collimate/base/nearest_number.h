#pragma once

#include <string>

namespace collimate::base {

// Returns, as text, the number within the limits that is nearest to the number in `text`, rounded first with `whole`.
// Returns `otherwise` when `text` is no number.
std::string nearest_number(const std::string& text, double low, double high, const std::string& otherwise = "",
                           bool whole = false);

}  // namespace collimate::base

#pragma once

#include <string>

namespace collimate::plan {

// A number with three significant digits, at least so many decimals and at most six: of 2 decimals "150.63", "1.05",
// "0.0213", and "0.00" of 0.
std::string three_digits(double value, int decimals);

}  // namespace collimate::plan

#pragma once

#include <string>

namespace collimate::plan {

// Writes a number with three significant digits, but with at least `decimals` decimals and at most six. With 2
// decimals: "150.63", "1.05", "0.0213", and "0.00" for 0.
std::string three_digits(double value, int decimals);

}  // namespace collimate::plan

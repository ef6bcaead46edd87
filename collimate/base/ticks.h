#pragma once

#include <vector>

namespace collimate::base {

// Returns ascending round values (1, 2 or 5 times a power of ten) inside [low, high], about `count` of them, to label
// an axis.
std::vector<double> ticks(double low, double high, int count);

}  // namespace collimate::base

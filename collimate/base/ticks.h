#pragma once

#include <vector>

namespace collimate::base {

// Ascending round values (1, 2 or 5 times a power of ten) inside [low, high], about `count` of them: what an axis
// labels.
std::vector<double> ticks(double low, double high, int count);

}  // namespace collimate::base

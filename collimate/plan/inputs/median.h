#pragma once

#include <vector>

namespace collimate::plan {

// The median of an even number is the mean of the two in the middle; that of nothing is 0.
double median_of(std::vector<double> values);

}  // namespace collimate::plan

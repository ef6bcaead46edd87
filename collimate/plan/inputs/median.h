#pragma once

#include <vector>

namespace collimate::plan {

// Of an even number the mean of the two in the middle; 0 of nothing.
double median_of(std::vector<double> values);

}  // namespace collimate::plan

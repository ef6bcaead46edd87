#pragma once

#include <vector>

namespace collimate::plan {

// Returns the median. For an even number of values it is the mean of the two in the middle; for none it is 0.
double median_of(std::vector<double> values);

}  // namespace collimate::plan

#pragma once

#include <vector>

namespace collimate::plan {

// A quadratic problem over n numbers: the least of x' H x / 2 - g' x, H [n, n] symmetric and positive definite, with
// low <= x <= high.
struct BoundedQuadratic {
  std::vector<std::vector<double>> curvature;  // H
  std::vector<double> gradient;                // g
  std::vector<double> low, high;
};

// The solution. Bounds that hold it back are found one by one, then every number is moved by itself until nothing
// changes: exact where no bound holds, else to a relative 1e-12 of the numbers or after 10,000 rounds.
std::vector<double> solve(const BoundedQuadratic& problem);

}  // namespace collimate::plan

#pragma once

#include <vector>

namespace collimate::plan {

// A BoundedQuadratic asks for the n numbers x that make x' H x / 2 - g' x least, with low <= x <= high and H [n, n]
// symmetric and positive definite.
struct BoundedQuadratic {
  std::vector<std::vector<double>> curvature;  // H
  std::vector<double> gradient;                // g
  std::vector<double> low, high;
};

// Returns the solution. Bounds that hold it back are found one by one, then every number is moved by itself until
// nothing changes. The result is exact where no bound holds, else to a relative 1e-12 of the numbers or as good as
// 10,000 rounds make it.
std::vector<double> solve(const BoundedQuadratic& problem);

}  // namespace collimate::plan

#pragma once

#include <cmath>
#include <vector>

#include "collimate/model/weights.h"

namespace collimate::model::testing {

// Gives the whole parameters of a model that ranks share, on the first of them.
inline std::vector<float> whole_values(const Weights& weights) {
  std::vector<float> all;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const auto whole = weights.gather(static_cast<int>(i), [&]() -> std::vector<float> {
      const auto mine = weights.values(static_cast<int>(i));
      return {mine.begin(), mine.end()};
    });
    all.insert(all.end(), whole.begin(), whole.end());
  }
  return all;
}

// ‖a − b‖
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += std::pow(double{a[i]} - b.at(i), 2);
  return std::sqrt(squares);
}

}  // namespace collimate::model::testing

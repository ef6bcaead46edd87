#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace collimate::model::testing {

// Compares a parameter's gradient with that of one rank by ‖Δg‖ / ‖g‖. That of keys' biases is 0 but for rounding.
inline void expect_near_gradient(const std::vector<float>& whole, const std::vector<float>& given,
                                 const std::string& name) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    difference += std::pow(double{whole[i]} - given[i], 2);
    norm += std::pow(double{whole[i]}, 2);
  }
  EXPECT_LE(std::sqrt(difference), 1e-5 * (std::sqrt(norm) + 1)) << name;
}

}  // namespace collimate::model::testing

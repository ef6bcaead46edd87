#pragma once

#include <string>

#include "collimate/model/weights.h"

namespace collimate::model {

// The report says what rounding to int8 changes in the weights of linear layers that compute so: √(Σ (w - rounded)² ÷
// Σ w²). Zeros where none does.
struct RoundingReport {
  double relative = 0;  // of all together
  double most = 0;      // of the parameter where it is largest
  std::string most_of;
};
RoundingReport int8_rounding(const tensor::Exec& exec, const Weights& weights);

}  // namespace collimate::model

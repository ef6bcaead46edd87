#pragma once

#include <string>

#include "collimate/model/weights.h"

namespace collimate::model {

// The report says how much rounding changes the weights of linear layers that compute in int8: √(Σ (w - rounded)²
// ÷ Σ w²). It is 0 where no layer does.
struct RoundingReport {
  double relative = 0;  // over all of these weights together
  double most = 0;      // over the parameter most_of, where it is largest
  std::string most_of;
};
RoundingReport int8_rounding(const tensor::Exec& exec, const Weights& weights);

}  // namespace collimate::model

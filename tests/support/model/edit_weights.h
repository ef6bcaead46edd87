#pragma once

#include "collimate/base/at.h"
#include "collimate/model/weights.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model::testing {

// Opens the values of a parameter for changes by the host. The weights must be on the default device.
inline tensor::HostEdit edit_of(Weights& weights, int index) {
  return {tensor::Exec{}, weights.param(index), base::at(weights.params(), index).count()};
}

}  // namespace collimate::model::testing

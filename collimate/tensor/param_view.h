#pragma once

#include <ATen/core/Tensor.h>

#include "collimate/shape/param_spec.h"

namespace collimate::tensor {

// One parameter as others see it: its name and layout, and a view of its values that owns nothing. Weight links,
// exports and Python modules know weights by these alone.
struct ParamView {
  shape::ParamSpec spec;
  at::Tensor tensor;  // [spec.sizes…]
};

}  // namespace collimate::tensor

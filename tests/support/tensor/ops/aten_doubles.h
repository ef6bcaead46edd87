#pragma once

#include <ATen/ATen.h>

#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {

inline at::Tensor doubles(const Floats& values, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(values.data()), sizes, at::kFloat).to(at::kDouble);
}

}  // namespace collimate::tensor

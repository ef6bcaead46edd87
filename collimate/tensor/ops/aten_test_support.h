#pragma once

#include <ATen/ATen.h>

#include "collimate/tensor/ops/op_test_support.h"

namespace collimate::tensor {

inline at::Tensor doubles(const Floats& values, at::IntArrayRef sizes) {
  return at::from_blob(const_cast<float*>(values.data()), sizes, at::kFloat).to(at::kDouble);
}

}  // namespace collimate::tensor

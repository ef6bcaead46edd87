#include "collimate/tensor/results.h"

#include <ATen/ops/empty.h>

#include "collimate/base/error.h"

namespace collimate::tensor {

at::Tensor empty_result(const Exec&, at::IntArrayRef sizes, at::ScalarType type) { return at::empty(sizes, type); }

HostTensor::HostTensor(const at::Tensor& values) : values_(values.cpu()) {
  COLLIMATE_CHECK(values_.is_contiguous() && values_.scalar_type() == at::kFloat, "contiguous fp32");
}

std::span<const float> HostTensor::floats() const {
  return {values_.const_data_ptr<float>(), static_cast<size_t>(values_.numel())};
}

}  // namespace collimate::tensor

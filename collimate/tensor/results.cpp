#include "collimate/tensor/results.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::tensor {
namespace {

template <class T>
at::Tensor beside(const at::Tensor& other, std::span<const T> values, at::ScalarType type) {
  const int64_t count = std::ssize(values);
  const at::Tensor out = other.defined() ? other.new_empty({count}, type) : at::empty({count}, type);
  return out.copy_(at::from_blob(const_cast<T*>(values.data()), {count}, type));
}

const float* checked_floats(const at::Tensor& values) {
  COLLIMATE_CHECK(values.is_contiguous() && values.scalar_type() == at::kFloat, "contiguous fp32");
  return device_data<const float>(values);
}

}  // namespace

at::Tensor empty_result(const Exec& exec, at::IntArrayRef sizes, at::ScalarType type) {
  const int64_t bytes = c10::multiply_integers(sizes) * static_cast<int64_t>(c10::elementSize(type));
  if (bytes == 0 || exec.device == &cpu_device())
    return at::empty(sizes, type);  // ATen asks this program's allocator itself
  const Device* device = exec.device;
  return at::from_blob(
      device->take(bytes), sizes, [device](void* block) { device->give_back(block, /*keep=*/true); },
      at::TensorOptions(type));
}

at::Tensor tensor_beside(const at::Tensor& other, std::span<const float> values) {
  return beside(other, values, at::kFloat);
}
at::Tensor tensor_beside(const at::Tensor& other, std::span<const int64_t> values) {
  return beside(other, values, at::kLong);
}

HostTensor::HostTensor(const Exec& exec, const at::Tensor& values)
    : values_(values), view_(exec, checked_floats(values_), values_.numel()) {}

}  // namespace collimate::tensor

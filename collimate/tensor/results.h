#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "collimate/tensor/host_access.h"

namespace collimate::tensor {

// These functions handle ATen tensors between operations and losses: the results of a model and the inputs of its
// backward. ATen's own operations know where a tensor lies; our operations and the host reach its numbers through
// these.

// Returns a contiguous tensor of undefined contents in the device's memory, for its operations to write and ATen to
// read.
at::Tensor empty_result(const Exec& exec, at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
// Returns the memory of a tensor for an operation to read or write; null for an undefined tensor.
template <class T = float>
T* device_data(const at::Tensor& values) {
  return values.defined() ? static_cast<T*>(values.data_ptr()) : nullptr;
}
// Copies numbers of the host to a tensor [n] on the device of `beside`, so that one operation of ATen can take both; to
// the host where `beside` is undefined.
at::Tensor tensor_beside(const at::Tensor& beside, std::span<const float> values);
at::Tensor tensor_beside(const at::Tensor& beside, std::span<const int64_t> values);

// A HostTensor lets the host read the numbers of a contiguous fp32 tensor for as long as it lives.
class HostTensor {
 public:
  HostTensor(const Exec& exec, const at::Tensor& values);
  std::span<const float> floats() const { return view_.span(); }

 private:
  at::Tensor values_;
  HostRead view_;
};

}  // namespace collimate::tensor

#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "collimate/tensor/host_access.h"

namespace collimate::tensor {

// ATen tensors between operations and losses: what a model returns, and what its backward is given. ATen's own
// operations know where a tensor lies; these are the ways to ours and to the host.

// A contiguous tensor of undefined contents in the device's memory, where its operations write and ATen's read.
at::Tensor empty_result(const Exec& exec, at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
// Gives the memory that an operation reads or writes; null of an undefined tensor.
template <class T = float>
T* device_data(const at::Tensor& values) {
  return values.defined() ? static_cast<T*>(values.data_ptr()) : nullptr;
}
// Numbers of the host as a tensor [n] on the device of `beside`, so that ATen's operations take both; on the host where
// `beside` is undefined.
at::Tensor tensor_beside(const at::Tensor& beside, std::span<const float> values);
at::Tensor tensor_beside(const at::Tensor& beside, std::span<const int64_t> values);

// A contiguous fp32 tensor's numbers as the host reads them, for as long as this lives.
class HostTensor {
 public:
  HostTensor(const Exec& exec, const at::Tensor& values);
  std::span<const float> floats() const { return view_.span(); }

 private:
  at::Tensor values_;
  HostRead view_;
};

}  // namespace collimate::tensor

#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// ATen tensors between operations and losses: what a model returns, and what its backward is given. ATen's own
// operations know where a tensor lies; these are the ways to ours and to the host.

// Undefined contents, where the device's operations write and ATen reads.
at::Tensor empty_result(const Exec& exec, at::IntArrayRef sizes, at::ScalarType type = at::kFloat);
// Gives the memory that an operation reads or writes; null of an undefined tensor.
template <class T = float>
T* device_data(const at::Tensor& values) {
  return values.defined() ? static_cast<T*>(values.data_ptr()) : nullptr;
}
// A contiguous tensor's numbers in the host's memory, for as long as this lives.
class HostTensor {
 public:
  explicit HostTensor(const at::Tensor& values);
  std::span<const float> floats() const;

 private:
  at::Tensor values_;
};

}  // namespace collimate::tensor

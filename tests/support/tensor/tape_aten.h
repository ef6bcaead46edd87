#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "collimate/tensor/tape.h"

namespace collimate::tensor {

// One node that wraps a piece of ATen autograd: `function` gets a [rows, width] view per input and returns the output
// [rows', width'] in fp32. With a null tape it runs without recording.
using AtenFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;
Slot* aten_node(Tape* tape, Arena& arena, std::span<Slot* const> inputs, const AtenFunction& function);

}  // namespace collimate::tensor

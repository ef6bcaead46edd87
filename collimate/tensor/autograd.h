#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace collimate::tensor {

// ATen autograd behind a few functions, so that only one translation unit pays for its headers. Where user losses live:
// leaves are log-probs, entropies, scores; what flows into them goes back through the model's own backward.

// A leaf that shares the values' memory and asks for a gradient.
at::Tensor make_leaf(const at::Tensor& values);
// dL/dleaf of a scalar loss; zeros where the loss does not depend on a leaf. The graph is freed.
std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& leaves);
// Does the same for an output of any shape with dL/doutput given.
std::vector<at::Tensor> gradients_of(const at::Tensor& output, const at::Tensor& output_gradient,
                                     const std::vector<at::Tensor>& leaves);

}  // namespace collimate::tensor

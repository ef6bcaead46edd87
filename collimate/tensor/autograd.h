#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace collimate::tensor {

// These few functions wrap ATen's autograd, so that only one translation unit pays for its headers. Losses of users run
// on it: their leaves are log-probs, entropies and scores, and the gradients of the leaves go back through the model's
// own backward.

// Returns a leaf that shares the values' memory and asks for a gradient.
at::Tensor make_leaf(const at::Tensor& values);
// Returns dL/dleaf of a scalar loss for each leaf: zeros for a leaf on which the loss does not depend. The graph is
// freed.
std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& leaves);
// Does the same for an output of any shape, whose gradient dL/doutput is given.
std::vector<at::Tensor> gradients_of(const at::Tensor& output, const at::Tensor& output_gradient,
                                     const std::vector<at::Tensor>& leaves);

}  // namespace collimate::tensor

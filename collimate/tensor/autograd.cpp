#include "collimate/tensor/autograd.h"

#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

namespace collimate::tensor {

at::Tensor make_leaf(const at::Tensor& values) { return values.detach().requires_grad_(true); }

std::vector<at::Tensor> gradients_of(const at::Tensor& loss, const std::vector<at::Tensor>& leaves) {
  return gradients_of(loss, {}, leaves);
}

std::vector<at::Tensor> gradients_of(const at::Tensor& output, const at::Tensor& output_gradient,
                                     const std::vector<at::Tensor>& leaves) {
  std::vector<at::Tensor> gradients(leaves.size());
  if (output.requires_grad()) {
    std::vector<at::Tensor> seeds;
    if (output_gradient.defined()) seeds.push_back(output_gradient);
    gradients = torch::autograd::grad({output}, leaves, seeds, /*retain_graph=*/false, /*create_graph=*/false,
                                      /*allow_unused=*/true);
  }
  for (size_t i = 0; i < leaves.size(); ++i)
    if (!gradients[i].defined()) gradients[i] = at::zeros_like(leaves[i]);
  return gradients;
}

}  // namespace collimate::tensor

#include "tests/support/tensor/tape_aten.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include "collimate/base/error.h"
#include "collimate/tensor/autograd.h"

namespace collimate::tensor {
namespace {

at::Tensor view(float* data, const Slot& slot) { return at::from_blob(data, {slot.rows, slot.width}, at::kFloat); }

}  // namespace

Slot* aten_node(Tape* tape, Arena& arena, std::span<Slot* const> inputs, const AtenFunction& function) {
  std::vector<at::Tensor> tensors, leaves;
  std::vector<Slot*> wanting;
  for (Slot* input : inputs) {
    tensors.push_back(view(input->value, *input));
    if (tape == nullptr || !input->wanted) continue;
    tensors.back() = make_leaf(tensors.back());
    leaves.push_back(tensors.back());
    wanting.push_back(input);
  }
  at::AutoGradMode recording(!wanting.empty());
  const at::Tensor result = function(tensors);
  COLLIMATE_CHECK(result.dim() == 2 && result.scalar_type() == at::kFloat, "an ATen node returns fp32 [rows, width]");
  Slot* output = make_slot(arena, result.size(0), result.size(1), !wanting.empty());
  view(output->value, *output).copy_(result.detach());
  if (wanting.empty()) return output;
  tape->push([tape, output, result, leaves, wanting] {
    if (Tape::gradient(*output) == nullptr) return;
    const auto gradients = gradients_of(result, view(output->gradient, *output), leaves);
    for (size_t i = 0; i < wanting.size(); ++i) view(tape->zeroed_target(*wanting[i]), *wanting[i]).add_(gradients[i]);
  });
  return output;
}

}  // namespace collimate::tensor

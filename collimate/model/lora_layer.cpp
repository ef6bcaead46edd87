#include "collimate/model/lora_layer.h"

#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {

Slot* add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted) {
  const LoraLayer& lora = *layer.lora;
  const int64_t width = lora.width();
  Slot* low = tensor::make_slot(step.arena, x.rows, width, wanted);
  tensor::linear(step.exec, x.value, layer.in, x.rows, step.weights.panels(lora.a), low->value, width);
  if (layer.cut == 1) step.weights.tensor().sum(step.exec, low->value, low->count());
  tensor::scale(step.exec, lora.scale, low->count(), low->value);
  const float* a = low->value;
  for (const LoraLayer::Part& part : lora.parts) {
    tensor::linear(step.exec, a, width, x.rows, step.weights.panels(part.b), out.value + part.first, layer.out,
                   {nullptr, /*accumulate=*/true});
    a += lora.rank;
  }
  return low;
}

void lora_backward(const tensor::Exec& exec, Weights& weights, tensor::Tape& tape, const Linear& layer, Slot& x,
                   Slot& low, const float* dy) {
  const LoraLayer& lora = *layer.lora;
  const tensor::ComputeType type = weights.options().compute;
  const int64_t width = lora.width(), rows = x.rows;
  float* dlow = tape.target(low).data;  // [T, width]
  int64_t column = 0;
  for (const LoraLayer::Part& part : lora.parts) {
    const float* dpart = dy + part.first;
    if (float* db = weights.param_gradient(part.b); db != nullptr)
      tensor::linear_grad_weight(exec, type, dpart, layer.out, low.value + column, width, rows, part.rows, lora.rank,
                                 db);
    tensor::linear_grad_input(exec, type, dpart, layer.out, rows, weights.param(part.b), part.rows, lora.rank,
                              dlow + column, width);
    column += lora.rank;
  }
  tensor::scale(exec, lora.scale, low.count(), dlow);
  if (x.wanted) {
    const tensor::GradientTarget dx = tape.target(x);
    tensor::linear_grad_input(exec, type, dlow, width, rows, weights.param(lora.a), width, layer.in, dx.data, layer.in,
                              dx.accumulate);
  }
  float* da = weights.param_gradient(lora.a);
  if (da == nullptr) return;
  if (layer.cut == 0) weights.tensor().sum(exec, dlow, low.count());  // A is whole, but not the outputs that read it
  tensor::linear_grad_weight(exec, type, dlow, width, x.value, layer.in, rows, width, layer.in, da);
}

}  // namespace collimate::model

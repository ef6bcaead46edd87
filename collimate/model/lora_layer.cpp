#include "collimate/model/lora_layer.h"

#include "collimate/tensor/ops/dropout.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {
namespace {

bool drops(const Step& step, const LoraLayer& lora) { return lora.dropout > 0 && step.input.noise() != nullptr; }

// Writes to `to` [T, width] what the layer's dropout keeps of `from`, or adds it there.
void keep_some(const Step& step, const LoraLayer& lora, const float* from, int64_t width, float* to,
               bool accumulate = false) {
  const tensor::Dropout dropout{step.input.noise(), lora.noise, lora.dropout, lora.first_column};
  tensor::dropout(step.exec, dropout, from, step.rows(), width, to, accumulate);
}

// Returns x or, with dropout, what the dropout keeps of it, in memory of the arena.
const float* kept_inputs(const Step& step, const LoraLayer& lora, const Slot& x) {
  if (!drops(step, lora)) return x.value;
  float* kept = step.arena.take(x.count());
  keep_some(step, lora, x.value, x.width, kept);
  return kept;
}

// Adds the adapters' part of dx, from the gradient of A x.
void add_input_gradient(const Step& step, const Linear& layer, Slot& x, const float* dlow) {
  const LoraLayer& lora = *layer.lora;
  const tensor::GradientTarget dx = step.tape->target(x);
  const auto write = [&](float* to, bool accumulate) {
    tensor::linear_grad_input(step.exec, step.weights.options().compute, dlow, lora.width(), x.rows,
                              step.weights.param(lora.a), lora.width(), layer.in, to, layer.in, accumulate);
  };
  if (!drops(step, lora)) return write(dx.data, dx.accumulate);
  const tensor::Arena::Mark mark = step.arena.mark();
  float* whole = step.arena.take(x.count());
  write(whole, false);
  keep_some(step, lora, whole, layer.in, dx.data, dx.accumulate);
  step.arena.rewind(mark);
}

}  // namespace

Slot* add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted) {
  const LoraLayer& lora = *layer.lora;
  const int64_t width = lora.width();
  Slot* low = tensor::make_slot(step.arena, x.rows, width, wanted);
  const tensor::Arena::Mark mark = step.arena.mark();
  tensor::linear(step.exec, kept_inputs(step, lora, x), layer.in, x.rows, step.weights.panels(lora.a), low->value,
                 width);
  step.arena.rewind(mark);
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

void lora_backward(const Step& step, const Linear& layer, Slot& x, Slot& low, const float* dy) {
  const LoraLayer& lora = *layer.lora;
  Weights& weights = step.weights;
  const tensor::ComputeType type = weights.options().compute;
  const int64_t width = lora.width(), rows = x.rows;
  float* dlow = step.tape->target(low).data;  // [T, width]
  int64_t column = 0;
  for (const LoraLayer::Part& part : lora.parts) {
    const float* dpart = dy + part.first;
    if (float* db = weights.param_gradient(part.b); db != nullptr)
      tensor::linear_grad_weight(step.exec, type, dpart, layer.out, low.value + column, width, rows, part.rows,
                                 lora.rank, db);
    tensor::linear_grad_input(step.exec, type, dpart, layer.out, rows, weights.param(part.b), part.rows, lora.rank,
                              dlow + column, width);
    column += lora.rank;
  }
  tensor::scale(step.exec, lora.scale, low.count(), dlow);
  if (x.wanted) add_input_gradient(step, layer, x, dlow);
  float* da = weights.param_gradient(lora.a);
  if (da == nullptr) return;
  if (layer.cut == 0) weights.tensor().sum(step.exec, dlow, low.count());  // ranks have all of A, but some outputs each
  const tensor::Arena::Mark mark = step.arena.mark();
  tensor::linear_grad_weight(step.exec, type, dlow, width, kept_inputs(step, lora, x), layer.in, rows, width, layer.in,
                             da);
  step.arena.rewind(mark);
}

}  // namespace collimate::model

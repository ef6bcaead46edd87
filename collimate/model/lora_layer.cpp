#include "collimate/model/lora_layer.h"

#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/columns.h"
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

// Multiplies what A gives, or its gradient, [rows, width] by the scales of the parts.
void scale_low(const Step& step, const LoraLayer& lora, int64_t rows, float* low) {
  if (lora.scales.empty()) return tensor::scale(step.exec, lora.scale, rows * lora.width, low);
  const tensor::OnDevice<float> scales(step.exec, lora.scales);
  tensor::scale_columns(step.exec, scales.data(), low, rows, lora.width, lora.width, low);
}

// Adds the adapters' part of dx, from the gradient of A x.
void add_input_gradient(const Step& step, const Linear& layer, Slot& x, const float* dlow) {
  const LoraLayer& lora = *layer.lora;
  const tensor::GradientTarget dx = step.tape->target(x);
  const auto write = [&](float* to, bool accumulate) {
    tensor::linear_grad_input(step.exec, step.weights.options().compute, dlow, lora.width, x.rows,
                              step.weights.param(lora.a), lora.width, layer.in, to, layer.in, accumulate);
  };
  if (!drops(step, lora)) return write(dx.data, dx.accumulate);
  const tensor::Arena::Mark mark = step.arena.mark();
  float* whole = step.arena.take(x.count());
  write(whole, false);
  keep_some(step, lora, whole, layer.in, dx.data, dx.accumulate);
  step.arena.rewind(mark);
}

}  // namespace

LoraKept add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted) {
  const LoraLayer& lora = *layer.lora;
  const int64_t width = lora.width;
  Slot* low = tensor::make_slot(step.arena, x.rows, width, wanted);
  const tensor::Arena::Mark mark = step.arena.mark();
  tensor::linear(step.exec, kept_inputs(step, lora, x), layer.in, x.rows, step.weights.panels(lora.a), low->value,
                 width);
  step.arena.rewind(mark);
  if (layer.cut == 1) step.weights.tensor().sum(step.exec, low->value, low->count());
  scale_low(step, lora, x.rows, low->value);
  const float* a = low->value;
  for (const LoraLayer::Part& part : lora.parts) {
    tensor::linear(step.exec, a, width, x.rows, step.weights.panels(part.b), out.value + part.first, layer.out,
                   {nullptr, /*accumulate=*/true});
    a += part.rank;
  }
  return {low};
}

LoraKept decomposed_forward(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool accumulate) {
  const tensor::Exec& exec = step.exec;
  const bool wanted = step.tape != nullptr && out.wanted;
  const tensor::Arena::Mark before = step.arena.mark();
  Slot sum = out;
  if (wanted || accumulate) sum.value = step.arena.take(out.count());
  tensor::linear(exec, x.value, layer.in, x.rows, step.weights.panels(layer.weight), sum.value, layer.out);
  LoraKept kept = add_lora(step, layer, x, sum, wanted);
  kept.sum = sum.value;
  const tensor::Arena::Mark mark = step.arena.mark();
  // The product has memory of its own where the sum is kept and `out` holds the stream.
  float* y = !accumulate ? out.value : wanted ? step.arena.take(out.count()) : sum.value;
  const RowFactors rows = step.weights.row_factors(layer.weight);
  tensor::scale_columns(exec, rows.factors, sum.value, out.rows, layer.out, layer.out, y);
  if (const float* bias = bias_of(step.weights, layer); bias != nullptr)
    tensor::add_bias(exec, bias, out.rows, layer.out, y, layer.out);
  if (accumulate) tensor::add(exec, y, out.count(), out.value);
  step.arena.rewind(wanted ? mark : before);
  return kept;
}

const float* decomposed_backward(const Step& step, const Linear& layer, const LoraKept& kept, int64_t rows,
                                 const float* dy) {
  const RowFactors of_rows = step.weights.row_factors(layer.weight);
  for (const LoraLayer::Part& part : layer.lora->parts)
    if (float* dlengths = step.weights.param_gradient(part.lengths); dlengths != nullptr)
      tensor::add_column_dots(
          step.exec,
          {of_rows.inverses + part.first, dy + part.first, kept.sum + part.first, rows, part.rows, layer.out},
          dlengths);
  float* dsum = step.arena.take(rows * layer.out);
  tensor::scale_columns(step.exec, of_rows.factors, dy, rows, layer.out, layer.out, dsum);
  return dsum;
}

void lora_backward(const Step& step, const Linear& layer, Slot& x, Slot& low, const float* dy) {
  const LoraLayer& lora = *layer.lora;
  Weights& weights = step.weights;
  const tensor::ComputeType type = weights.options().compute;
  const int64_t width = lora.width, rows = x.rows;
  float* dlow = step.tape->target(low).data;  // [T, width]
  int64_t column = 0;
  for (const LoraLayer::Part& part : lora.parts) {
    const float* dpart = dy + part.first;
    if (float* db = weights.param_gradient(part.b); db != nullptr)
      tensor::linear_grad_weight(step.exec, type, dpart, layer.out, low.value + column, width, rows, part.rows,
                                 part.rank, db);
    tensor::linear_grad_input(step.exec, type, dpart, layer.out, rows, weights.param(part.b), part.rows, part.rank,
                              dlow + column, width);
    column += part.rank;
  }
  scale_low(step, lora, rows, dlow);
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

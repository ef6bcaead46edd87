#include "collimate/base/error.h"
#include "collimate/model/recording.h"
#include "collimate/tensor/ops/activation.h"

namespace collimate::model {
namespace {

// Runs a gated activation, given as an operation and its gradient.
template <class Forward, class Backward>
Slot* gated(Step& step, const Forward& forward, const Backward& backward, Slot* gate_up) {
  const int64_t width = gate_up->width / 2, stride = gate_up->width;
  Slot* out = tensor::make_slot(step.arena, gate_up->rows, width, gate_up->wanted);
  forward(step.exec, gate_up->value, gate_up->value + width, stride, out->rows, width, out->value, width);
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    float* dx = only_target(*tape, *gate_up);
    backward(exec, dy, width, gate_up->value, gate_up->value + width, stride, out->rows, width, dx, dx + width);
  });
  return out;
}

Slot* bounded_swish(Step& step, const shape::Mlp& mlp, Slot* gate_up) {
  const tensor::SwishBounds how{static_cast<float>(mlp.slope), static_cast<float>(mlp.bound)};
  return gated(
      step, [how](const auto& exec, auto... rest) { tensor::bounded_swish_mul(exec, how, rest...); },
      [how](const auto& exec, auto... rest) { tensor::bounded_swish_mul_backward(exec, how, rest...); }, gate_up);
}

// Holds an operation on each number, and its gradient.
struct Elementwise {
  void (*forward)(const tensor::Exec& exec, const float* x, int64_t count, float* y);
  void (*backward)(const tensor::Exec& exec, const float* dy, const float* x, int64_t count, float* dx);
};
Slot* elementwise(Step& step, const Elementwise& operation, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, x->width, x->wanted);
  operation.forward(step.exec, x->value, x->count(), out->value);
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    operation.backward(exec, dy, x->value, x->count(), only_target(*tape, *x));
  });
  return out;
}

}  // namespace

Slot* sigmoid(Step& step, Slot* x) { return elementwise(step, {tensor::sigmoid, tensor::sigmoid_backward}, x); }

Slot* activate(Step& step, const shape::Mlp& mlp, Slot* x) {
  COLLIMATE_CHECK(x->width == mlp.up_width(), "{} numbers a row", x->width);
  switch (mlp.activation) {
    case shape::Activation::kSilu:
      COLLIMATE_CHECK(mlp.gated, "silu without a gate");
      return gated(step, &tensor::silu_mul, &tensor::silu_mul_backward, x);
    case shape::Activation::kGeluTanh:
      if (mlp.gated) return gated(step, &tensor::gelu_tanh_mul, &tensor::gelu_tanh_mul_backward, x);
      return elementwise(step, {tensor::gelu_tanh, tensor::gelu_tanh_backward}, x);
    case shape::Activation::kGelu:
      COLLIMATE_CHECK(!mlp.gated, "a gate of GELU by erf");
      return elementwise(step, {tensor::gelu, tensor::gelu_backward}, x);
    case shape::Activation::kRelu:
      COLLIMATE_CHECK(!mlp.gated, "a gate of ReLU");
      return elementwise(step, {tensor::relu, tensor::relu_backward}, x);
    case shape::Activation::kReluSquared:
      COLLIMATE_CHECK(!mlp.gated, "a gate of squared ReLU");
      return elementwise(step, {tensor::relu_squared, tensor::relu_squared_backward}, x);
    case shape::Activation::kBoundedSwish:
      COLLIMATE_CHECK(mlp.gated, "a bounded swish without a gate");
      return bounded_swish(step, mlp, x);
  }
  return nullptr;
}

}  // namespace collimate::model

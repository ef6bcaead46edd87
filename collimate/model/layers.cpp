#include "collimate/model/layers.h"

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/lora_layer.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/norm.h"

namespace collimate::model {
namespace {

using tensor::GradientTarget;
using tensor::Tape;

// Does a layer with this parameter, fed by x, take part in the backward?
bool recorded(const Step& step, const Slot* x, int param) {
  return step.tape != nullptr &&
         ((x != nullptr && x->wanted) || (param >= 0 && step.weights.param_gradient(param) != nullptr));
}

bool recorded(const Step& step, const Slot* x, const Linear& layer) {
  return recorded(step, x, layer.weight) || (layer.lora != nullptr && recorded(step, x, layer.lora->a));
}

// out = x W^T + bias, or added to it, with what adapters add. Returns what their backward reads; null without any.
Slot* linear_forward(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool accumulate) {
  tensor::linear(step.exec, x.value, layer.in, x.rows, step.weights.panels(layer.weight), out.value, layer.out,
                 {bias_of(step.weights, layer), accumulate});
  return layer.lora == nullptr ? nullptr : add_lora(step, layer, x, out, step.tape != nullptr && out.wanted);
}

// dW, db and, where wanted, dx of a linear layer and its adapters, from dy.
void linear_backward(const tensor::Exec& exec, Weights& weights, Tape& tape, const Linear& layer, Slot& x, Slot* low,
                     const float* dy) {
  const tensor::ComputeType type = compute_of(weights.options(), base::at(weights.params(), layer.weight));
  if (float* dw = weights.param_gradient(layer.weight); dw != nullptr) {
    float* db = layer.bias < 0 ? nullptr : weights.param_gradient(layer.bias);
    tensor::linear_grad_weight(exec, type, dy, layer.out, x.value, layer.in, x.rows, layer.out, layer.in, dw, db);
  }
  if (x.wanted) {
    const GradientTarget dx = tape.target(x);
    tensor::linear_grad_input(exec, type, dy, layer.out, x.rows, weights.param(layer.weight), layer.out, layer.in,
                              dx.data, layer.in, dx.accumulate);
  }
  if (low != nullptr) lora_backward(exec, weights, tape, layer, x, *low, dy);
}

}  // namespace

const float* bias_of(Weights& weights, const Linear& layer) {
  return layer.bias < 0 ? nullptr : weights.param(layer.bias);
}

Linear find_linear(const Weights& weights, shape::Part part, int segment) {
  Linear layer;
  layer.weight = weights.index_of(part, segment);
  layer.bias = weights.index_of(part, segment, /*bias=*/true);
  COLLIMATE_CHECK(layer.weight >= 0, "segment {}", segment);
  layer.in = base::at(weights.params(), layer.weight).sizes[1];
  layer.out = shape::fused_rows(weights.params(), layer.weight);
  layer.lora = find_lora(weights, layer.weight);
  return layer;
}

Norm find_norm(const Weights& weights, shape::Part part, int segment, const shape::Block& block) {
  const int weight = weights.index_of(part, segment);
  COLLIMATE_CHECK(weight >= 0, "segment {}", segment);
  return {weight, weights.index_of(part, segment, /*bias=*/true), block.norm_epsilon};
}

Slot* embed(Step& step, int table, int position_table, int64_t unused) {
  const auto& sizes = base::at(step.weights.params(), table).sizes;
  const int64_t entries = sizes[0], width = sizes[1];
  const int64_t places = position_table < 0 ? 0 : base::at(step.weights.params(), position_table).sizes[0];
  Slot* out = tensor::make_slot(step.arena, step.rows(), width, recorded(step, nullptr, table));
  step.weights.look_up(table, {step.input.host_ids(), step.input.ids()}, out->value);
  if (position_table >= 0)
    step.weights.look_up(position_table, {step.input.host_positions(), step.input.positions(), unused}, out->value,
                         /*accumulate=*/true);
  if (!out->wanted) return out;
  step.tape->push([=, &weights = step.weights, exec = step.exec, ids = step.input.ids(), at = step.input.positions()] {
    const float* dout = Tape::gradient(*out);
    if (dout == nullptr) return;
    tensor::embedding_backward(exec, dout, ids, out->rows, entries, width, weights.param_gradient(table));
    if (position_table >= 0)
      tensor::embedding_backward(exec, dout, at, out->rows, places - unused, width,
                                 weights.param_gradient(position_table) + unused * width);
  });
  return out;
}

Slot* normalize(Step& step, const Norm& norm, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, x->width, recorded(step, x, norm.weight));
  const float* weight = step.weights.param(norm.weight);
  const bool centered = norm.bias >= 0;
  float* inverse = out->wanted ? step.arena.take(x->rows) : nullptr;
  float* mean = out->wanted && centered ? step.arena.take(x->rows) : nullptr;
  if (centered) {
    tensor::layer_norm(step.exec, x->value, x->rows, x->width, weight, step.weights.param(norm.bias), norm.epsilon,
                       out->value, mean, inverse);
  } else {
    tensor::rms_norm(step.exec, x->value, x->rows, x->width, weight, norm.epsilon, out->value, inverse);
  }
  if (!out->wanted) return out;
  step.tape->push([=, &weights = step.weights, &arena = step.arena, exec = step.exec, tape = step.tape] {
    const float* dy = Tape::gradient(*out);
    if (dy == nullptr) return;
    const GradientTarget dx = x->wanted ? tape->target(*x) : GradientTarget{arena.take(x->count()), false};
    if (centered) {
      tensor::layer_norm_backward(exec, dy, x->value, mean, inverse, x->rows, x->width, weights.param(norm.weight),
                                  dx.data, dx.accumulate, weights.param_gradient(norm.weight),
                                  weights.param_gradient(norm.bias));
    } else {
      tensor::rms_norm_backward(exec, dy, x->value, inverse, x->rows, x->width, weights.param(norm.weight), dx.data,
                                dx.accumulate, weights.param_gradient(norm.weight));
    }
  });
  return out;
}

Slot* linear(Step& step, const Linear& layer, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, layer.out, recorded(step, x, layer));
  Slot* low = linear_forward(step, layer, *x, *out, /*accumulate=*/false);
  if (!out->wanted) return out;
  step.tape->push([=, &weights = step.weights, exec = step.exec, tape = step.tape] {
    if (const float* dy = Tape::gradient(*out)) linear_backward(exec, weights, *tape, layer, *x, low, dy);
  });
  return out;
}

void pass_through(const tensor::Exec& exec, Tape& tape, Slot& out, Slot& in) {
  if (!in.wanted) return;
  if (in.gradient == nullptr) {
    in.gradient = out.gradient;
    in.written = true;
    return;
  }
  tensor::add(exec, out.gradient, out.count(), tape.zeroed_target(in));
}

Slot* add_linear(Step& step, const Linear& layer, Slot* x, Slot* stream) {
  Slot* out = stream;
  if (step.tape != nullptr) {
    out = tensor::make_slot(step.arena, stream->rows, stream->width, stream->wanted || recorded(step, x, layer));
    tensor::copy(step.exec, stream->value, stream->count(), out->value);
  }
  Slot* low = linear_forward(step, layer, *x, *out, /*accumulate=*/true);
  if (step.tape == nullptr || !out->wanted) return out;
  step.tape->push([=, &weights = step.weights, exec = step.exec, tape = step.tape] {
    const float* dy = Tape::gradient(*out);
    if (dy == nullptr) return;
    linear_backward(exec, weights, *tape, layer, *x, low, dy);
    pass_through(exec, *tape, *out, *stream);
  });
  return out;
}

namespace {

// Whole numbers of the attention operations.
struct Heads {
  explicit Heads(const Attention& a)
      : heads(static_cast<int>(a.heads)),
        kv_heads(static_cast<int>(a.kv_heads)),
        head_dim(static_cast<int>(a.head_dim)),
        scale(a.scale > 0 ? static_cast<float>(a.scale) : 1.0F / std::sqrt(static_cast<float>(a.head_dim))),
        row(a.query_width() + 2 * a.kv_width()) {}
  int heads, kv_heads, head_dim;
  float scale;
  int64_t row;  // of q, k and v together
};

void attend_backward(const Step& step, const Attention& a, Slot& qkv, const Slot& out, const float* lse) {
  const Heads h(a);
  const GradientTarget into = step.tape->target(qkv);
  COLLIMATE_CHECK(!into.accumulate, "q, k and v have one reader");
  tensor::AttentionBackward args;
  args.heads = h.heads;
  args.kv_heads = h.kv_heads;
  args.head_dim = h.head_dim;
  args.scale = h.scale;
  args.window = a.window;
  args.q = qkv.value;
  args.k = qkv.value + a.query_width();
  args.v = args.k + a.kv_width();
  args.q_stride = args.kv_stride = args.dq_stride = args.dkv_stride = h.row;
  args.out = out.value;
  args.dout = out.gradient;
  args.out_stride = a.query_width();
  args.lse = lse;
  args.dq = into.data;
  args.dk = args.dq + a.query_width();
  args.dv = args.dk + a.kv_width();
  tensor::attention_backward(step.exec, args, step.input.documents());
  if (a.rotary)
    tensor::rope_backward(step.exec, into.data, h.row, qkv.rows, h.heads + h.kv_heads, h.head_dim,
                          step.input.positions(), *step.rope);
}

void normalize_heads_backward(const Step& step, const HeadNorms& norms, const Attention& a, Slot& qkv,
                              const float* inverse, const float* dout) {
  const Heads h(a);
  const GradientTarget into = step.tape->target(qkv);
  COLLIMATE_CHECK(!into.accumulate, "q, k and v have one reader");
  tensor::copy(step.exec, dout, qkv.count(), into.data);  // of the values; those of q and k are written over
  const tensor::HeadRows q{qkv.rows, h.row, h.heads, h.head_dim}, k{qkv.rows, h.row, h.kv_heads, h.head_dim};
  const int64_t at = a.query_width();
  tensor::head_norm_backward(step.exec, dout, qkv.value, inverse, q, step.weights.param(norms.query), into.data,
                             step.weights.param_gradient(norms.query));
  tensor::head_norm_backward(step.exec, dout + at, qkv.value + at, inverse + qkv.rows * a.heads, k,
                             step.weights.param(norms.key), into.data + at, step.weights.param_gradient(norms.key));
}

}  // namespace

Slot* normalize_heads(Step& step, const HeadNorms& norms, const Attention& a, Slot* qkv) {
  const Heads h(a);
  Slot* out = tensor::make_slot(step.arena, qkv->rows, qkv->width,
                                recorded(step, qkv, norms.query) || recorded(step, qkv, norms.key));
  float* inverse = out->wanted ? step.arena.take(qkv->rows * (a.heads + a.kv_heads)) : nullptr;
  tensor::copy(step.exec, qkv->value, qkv->count(), out->value);
  const tensor::HeadRows q{qkv->rows, h.row, h.heads, h.head_dim}, k{qkv->rows, h.row, h.kv_heads, h.head_dim};
  const int64_t at = a.query_width();
  tensor::head_norm(step.exec, qkv->value, q, step.weights.param(norms.query), norms.epsilon, out->value, inverse);
  tensor::head_norm(step.exec, qkv->value + at, k, step.weights.param(norms.key), norms.epsilon, out->value + at,
                    inverse == nullptr ? nullptr : inverse + qkv->rows * a.heads);
  if (!out->wanted) return out;
  step.tape->push([step, norms, a, qkv, out, inverse] {
    if (const float* dout = Tape::gradient(*out)) normalize_heads_backward(step, norms, a, *qkv, inverse, dout);
  });
  return out;
}

Slot* attend(Step& step, const Attention& a, Slot* qkv) {
  const Heads h(a);
  if (a.rotary)
    tensor::rope(step.exec, qkv->value, h.row, qkv->rows, h.heads + h.kv_heads, h.head_dim, step.input.positions(),
                 *step.rope);
  tensor::AttentionForward args;
  args.layout = {h.kv_heads, h.head_dim, step.kv_bf16};
  float* k = qkv->value + a.query_width();
  if (is_bf16(step.weights.options().compute)) tensor::round_bf16(step.exec, k, h.row, qkv->rows, 2 * a.kv_width());
  tensor::append_kv(step.exec, args.layout, k, h.row, k + a.kv_width(), h.row, step.input.runs(), step.kv_storage);
  Slot* out = tensor::make_slot(step.arena, qkv->rows, a.query_width(), qkv->wanted);
  float* lse = step.tape != nullptr && qkv->wanted ? step.arena.take(qkv->rows * a.heads) : nullptr;
  args.heads = h.heads;
  args.scale = h.scale;
  args.window = a.window;
  args.q = qkv->value;
  args.q_stride = h.row;
  args.storage = step.kv_storage;
  args.out = out->value;
  args.out_stride = a.query_width();
  args.lse = lse;
  tensor::attention_forward(step.exec, args, step.input.runs());
  if (lse == nullptr) return out;
  step.tape->push([step, a, qkv, out, lse] {
    if (Tape::gradient(*out) != nullptr) attend_backward(step, a, *qkv, *out, lse);
  });
  return out;
}

namespace {

// Has the tape run backward(the gradient of `out`, where that of `in` goes), unless nobody wants it.
template <class Backward>
void record_activation(Step& step, Slot& in, Slot& out, const Backward& backward) {
  if (step.tape == nullptr || !out.wanted) return;
  step.tape->push([&in, &out, backward, tape = step.tape] {
    const float* dy = Tape::gradient(out);
    if (dy == nullptr) return;
    const GradientTarget into = tape->target(in);
    COLLIMATE_CHECK(!into.accumulate, "an activation's input has one reader");
    backward(dy, into.data);
  });
}

Slot* silu_mul(Step& step, Slot* gate_up) {
  const int64_t width = gate_up->width / 2, stride = gate_up->width;
  Slot* out = tensor::make_slot(step.arena, gate_up->rows, width, gate_up->wanted);
  tensor::silu_mul(step.exec, gate_up->value, gate_up->value + width, stride, out->rows, width, out->value, width);
  record_activation(step, *gate_up, *out, [=, exec = step.exec](const float* dy, float* dx) {
    tensor::silu_mul_backward(exec, dy, width, gate_up->value, gate_up->value + width, stride, out->rows, width, dx,
                              dx + width);
  });
  return out;
}

// An operation of each number, and its gradient.
struct Elementwise {
  void (*forward)(const tensor::Exec& exec, const float* x, int64_t count, float* y);
  void (*backward)(const tensor::Exec& exec, const float* dy, const float* x, int64_t count, float* dx);
};
Slot* elementwise(Step& step, const Elementwise& operation, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, x->width, x->wanted);
  operation.forward(step.exec, x->value, x->count(), out->value);
  record_activation(step, *x, *out, [=, exec = step.exec](const float* dy, float* dx) {
    operation.backward(exec, dy, x->value, x->count(), dx);
  });
  return out;
}

}  // namespace

Slot* activate(Step& step, const shape::Mlp& mlp, Slot* x) {
  COLLIMATE_CHECK(mlp.gated == (mlp.activation == shape::Activation::kSilu), "a gate has silu, and nothing else has");
  COLLIMATE_CHECK(x->width == mlp.up_width(), "{} numbers a row", x->width);
  switch (mlp.activation) {
    case shape::Activation::kSilu:
      return silu_mul(step, x);
    case shape::Activation::kGeluTanh:
      return elementwise(step, {tensor::gelu_tanh, tensor::gelu_tanh_backward}, x);
    case shape::Activation::kGelu:
      return elementwise(step, {tensor::gelu, tensor::gelu_backward}, x);
    case shape::Activation::kRelu:
      return elementwise(step, {tensor::relu, tensor::relu_backward}, x);
  }
  return nullptr;
}

}  // namespace collimate::model

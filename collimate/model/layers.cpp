#include "collimate/model/layers.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/lora_layer.h"
#include "collimate/model/recording.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/norm.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {
namespace {

using tensor::GradientTarget;
using tensor::Tape;

bool recorded(const Step& step, const Slot* x, const Linear& layer) {
  return recorded(step, x, layer.weight) || (layer.lora != nullptr && recorded(step, x, layer.lora->a));
}

// Runs a layer of which each tensor rank has some inputs: adds up the ranks' sums, then the bias.
void summed_linear(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool accumulate) {
  const tensor::Arena::Mark mark = step.arena.mark();
  float* sums = accumulate ? step.arena.take(out.count()) : out.value;
  tensor::linear(step.exec, x.value, layer.in, x.rows, step.weights.panels(layer.weight), sums, layer.out);
  step.weights.tensor().sum(step.exec, sums, out.count());
  if (const float* bias = bias_of(step.weights, layer); bias != nullptr)
    tensor::add_bias(step.exec, bias, out.rows, layer.out, sums, layer.out);
  if (accumulate) tensor::add(step.exec, sums, out.count(), out.value);
  step.arena.rewind(mark);
}

// Sets out to x W^T + bias with what adapters add, or adds that to it. Returns what the adapters' backward reads.
LoraKept linear_forward(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool accumulate) {
  if (layer.lora != nullptr && layer.lora->dora) return decomposed_forward(step, layer, x, out, accumulate);
  if (layer.cut == 1)
    summed_linear(step, layer, x, out, accumulate);
  else
    tensor::linear(step.exec, x.value, layer.in, x.rows, step.weights.panels(layer.weight), out.value, layer.out,
                   {bias_of(step.weights, layer), accumulate});
  return layer.lora == nullptr ? LoraKept{} : add_lora(step, layer, x, out, step.tape != nullptr && out.wanted);
}

// Computes dW, db and, where wanted, dx of a linear layer and its adapters, from dy.
void linear_backward(const Step& step, const Linear& layer, Slot& x, const LoraKept& kept, const float* dy) {
  const tensor::Exec& exec = step.exec;
  Weights& weights = step.weights;
  const tensor::Arena::Mark mark = step.arena.mark();
  const bool decomposed = kept.sum != nullptr;
  if (decomposed) dy = decomposed_backward(step, layer, kept, x.rows, dy);
  const tensor::ComputeType type = compute_of(weights.options(), base::at(weights.params(), layer.weight));
  if (float* dw = weights.param_gradient(layer.weight); dw != nullptr) {
    float* db = layer.bias < 0 ? nullptr : weights.param_gradient(layer.bias);
    tensor::linear_grad_weight(exec, type, dy, layer.out, x.value, layer.in, x.rows, layer.out, layer.in, dw, db);
  }
  if (x.wanted) {
    const GradientTarget dx = step.tape->target(x);
    tensor::linear_grad_input(exec, type, dy, layer.out, x.rows, weights.param(layer.weight), layer.out, layer.in,
                              dx.data, layer.in, dx.accumulate);
  }
  if (kept.low != nullptr) lora_backward(step, layer, x, *kept.low, dy);
  if (decomposed) step.arena.rewind(mark);
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
  layer.cut = base::at(weights.params(), layer.weight).cut;
  return layer;
}

float norm_offset(const shape::Block& block) { return shape::is_offset(block.norm) ? 1.0F : 0.0F; }

Norm find_norm(const Weights& weights, shape::Part part, int segment, const shape::Block& block) {
  const int weight = weights.index_of(part, segment);
  COLLIMATE_CHECK(weight >= 0, "segment {}", segment);
  return {weight, weights.index_of(part, segment, /*bias=*/true), block.norm_epsilon, norm_offset(block),
          shape::is_centred(block.norm)};
}

namespace {

// Holds those of a step's tokens whose rows of a table this tensor rank has, and their places among all tokens.
struct OwnTokens {
  OwnTokens(const Step& step, const shape::Piece& rows) {
    const std::span<const int32_t> all = step.input.host_ids();
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i] < rows.first || all[i] >= rows.first + rows.count) continue;
      host_ids.push_back(all[i] - static_cast<int32_t>(rows.first));
      host_places.push_back(static_cast<int32_t>(i));
    }
    ids = {step.exec, host_ids};
    places = {step.exec, host_places};
  }
  int64_t count() const { return static_cast<int64_t>(host_ids.size()); }

  std::vector<int32_t> host_ids, host_places;
  tensor::OnDevice<int32_t> ids, places;
};

// Does what embed() does for a table that is cut by the vocabulary: each rank gives the rows that it has.
Slot* embed_pieces(Step& step, int table, float scale) {
  const shape::ParamSpec& spec = base::at(step.weights.params(), table);
  tensor::check_embedding_ids(step.input.host_ids().data(), step.rows(), spec.whole);
  const int64_t entries = spec.sizes[0], width = spec.sizes[1];
  const auto own = std::make_shared<const OwnTokens>(step, spec.pieces.front());
  Slot* out = tensor::make_slot(step.arena, step.rows(), width, recorded(step, nullptr, table));
  const tensor::Arena::Mark mark = step.arena.mark();
  float* rows = step.arena.take(step.rows() * width);
  step.weights.look_up(table, {own->host_ids, own->ids.data()}, rows);
  tensor::zero(step.exec, out->count(), out->value);
  tensor::embedding_backward(step.exec, rows, own->places.data(), own->count(), step.rows(), width, out->value);
  step.arena.rewind(mark);
  step.weights.tensor().sum(step.exec, out->value, out->count());
  if (scale != 1) tensor::scale(step.exec, scale, out->count(), out->value);
  if (!out->wanted) return out;
  step.tape->push([=, &weights = step.weights, &arena = step.arena, exec = step.exec] {
    if (Tape::gradient(*out) == nullptr) return;
    if (scale != 1) tensor::scale(exec, scale, out->count(), out->gradient);
    const tensor::Arena::Mark before = arena.mark();
    float* gradients = arena.take(out->count());
    tensor::gather_rows(exec, out->gradient, width, own->host_places, gradients);
    tensor::embedding_backward(exec, gradients, own->ids.data(), own->count(), entries, width,
                               weights.param_gradient(table));
    arena.rewind(before);
  });
  return out;
}

}  // namespace

Slot* embed(Step& step, int table, float scale) {
  if (base::at(step.weights.params(), table).cut == 0) return embed_pieces(step, table, scale);
  const auto& sizes = base::at(step.weights.params(), table).sizes;
  const int64_t entries = sizes[0], width = sizes[1];
  Slot* out = tensor::make_slot(step.arena, step.rows(), width, recorded(step, nullptr, table));
  step.weights.look_up(table, {step.input.host_ids(), step.input.ids()}, out->value);
  if (scale != 1) tensor::scale(step.exec, scale, out->count(), out->value);
  if (!out->wanted) return out;
  step.tape->push([=, &weights = step.weights, exec = step.exec, ids = step.input.ids()] {
    if (Tape::gradient(*out) == nullptr) return;
    if (scale != 1) tensor::scale(exec, scale, out->count(), out->gradient);
    tensor::embedding_backward(exec, out->gradient, ids, out->rows, entries, width, weights.param_gradient(table));
  });
  return out;
}

Slot* add_positions(Step& step, int table, int64_t unused, Slot* embedded) {
  const int64_t places = base::at(step.weights.params(), table).sizes[0] - unused, width = embedded->width;
  step.weights.look_up(table, {step.input.host_positions(), step.input.positions(), unused}, embedded->value,
                       /*accumulate=*/true);
  if (!recorded(step, nullptr, table)) return embedded;
  step.tape->push([=, &weights = step.weights, exec = step.exec, at = step.input.positions()] {
    if (const float* dout = Tape::gradient(*embedded))
      tensor::embedding_backward(exec, dout, at, embedded->rows, places, width,
                                 weights.param_gradient(table) + unused * width);
  });
  return embedded;
}

namespace {

// The backward of a norm reads these, [T] each; an RMS norm has no means.
struct Moments {
  float* mean = nullptr;
  float* inverse = nullptr;
};

Moments take_moments(const Step& step, const Norm& norm, int64_t rows) {
  Moments moments;
  moments.inverse = step.arena.take(rows);
  if (norm.centred) moments.mean = step.arena.take(rows);
  return moments;
}

// Computes y = norm(x); y may be x itself. Fills in those of the moments that are not null.
void norm_forward(const Step& step, const Norm& norm, const Slot& x, float* y, const Moments& moments) {
  const float* weight = step.weights.param(norm.weight);
  if (norm.centred) {
    const float* bias = norm.bias < 0 ? nullptr : step.weights.param(norm.bias);
    tensor::layer_norm(step.exec, x.value, x.rows, x.width, weight, bias, norm.epsilon, y, moments.mean,
                       moments.inverse, norm.offset);
  } else {
    tensor::rms_norm(step.exec, x.value, x.rows, x.width, weight, norm.epsilon, y, moments.inverse, norm.offset);
  }
}

// Computes gradients of the norm's parameters and, where wanted, of x, from dy.
void norm_backward(const Step& step, const Norm& norm, Slot& x, const Moments& moments, const float* dy) {
  Weights& weights = step.weights;
  const GradientTarget dx = x.wanted ? step.tape->target(x) : GradientTarget{step.arena.take(x.count()), false};
  if (norm.centred) {
    float* dbias = norm.bias < 0 ? nullptr : weights.param_gradient(norm.bias);
    tensor::layer_norm_backward(step.exec, dy, x.value, moments.mean, moments.inverse, x.rows, x.width,
                                weights.param(norm.weight), dx.data, dx.accumulate, weights.param_gradient(norm.weight),
                                dbias, norm.offset);
  } else {
    tensor::rms_norm_backward(step.exec, dy, x.value, moments.inverse, x.rows, x.width, weights.param(norm.weight),
                              dx.data, dx.accumulate, weights.param_gradient(norm.weight), norm.offset);
  }
}

}  // namespace

Slot* normalize(Step& step, const Norm& norm, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, x->width, recorded(step, x, norm.weight));
  const Moments moments = out->wanted ? take_moments(step, norm, x->rows) : Moments{};
  norm_forward(step, norm, *x, out->value, moments);
  if (!out->wanted) return out;
  step.tape->push([step, norm, x, out, moments] {
    if (const float* dy = Tape::gradient(*out)) norm_backward(step, norm, *x, moments, dy);
  });
  return out;
}

Slot* spread(Step& step, Slot* x) {
  if (!step.weights.tensor().several() || step.tape == nullptr || !x->wanted) return x;
  Slot* out = tensor::alias_slot(step.arena, *x);
  step.tape->push([=, &weights = step.weights, exec = step.exec, tape = step.tape] {
    if (Tape::gradient(*out) == nullptr) return;
    weights.tensor().sum(exec, out->gradient, out->count());
    pass_through(exec, *tape, *out, *x);
  });
  return out;
}

Slot* normalize_stream(Step& step, const Norm& norm, Slot* stream) {
  if (step.tape != nullptr) return normalize(step, norm, stream);
  norm_forward(step, norm, *stream, stream->value, {});
  return stream;
}

Slot* add_normalized(Step& step, const Norm& norm, Slot* x, Slot* stream) {
  const bool kept = recorded(step, x, norm.weight);
  Slot* out = stream_to_add_to(step, stream, stream->wanted || kept);
  const Moments moments = kept ? take_moments(step, norm, x->rows) : Moments{};
  const tensor::Arena::Mark mark = step.arena.mark();
  float* normalized = step.arena.take(out->count());
  norm_forward(step, norm, *x, normalized, moments);
  tensor::add(step.exec, normalized, out->count(), out->value);
  step.arena.rewind(mark);
  if (step.tape == nullptr || !out->wanted) return out;
  step.tape->push([step, norm, x, out, stream, moments, kept] {
    const float* dy = Tape::gradient(*out);
    if (dy == nullptr) return;
    if (kept) norm_backward(step, norm, *x, moments, dy);
    pass_through(step.exec, *step.tape, *out, *stream);
  });
  return out;
}

Slot* add_scaled(Step& step, float factor, Slot* x, Slot* stream) {
  Slot* out = stream_to_add_to(step, stream, stream->wanted || x->wanted);
  tensor::scale(step.exec, factor, x->count(), x->value);
  tensor::add(step.exec, x->value, out->count(), out->value);
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    if (x->wanted) {
      float* dx = only_target(*tape, *x);
      tensor::copy(exec, dy, x->count(), dx);
      tensor::scale(exec, factor, x->count(), dx);
    }
    pass_through(exec, *tape, *out, *stream);
  });
  return out;
}

void scale(Step& step, float factor, Slot* x) {
  tensor::scale(step.exec, factor, x->count(), x->value);
  record(step, x, [=, exec = step.exec](const float*) { tensor::scale(exec, factor, x->count(), x->gradient); });
}

Slot* linear(Step& step, const Linear& layer, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, x->rows, layer.out, recorded(step, x, layer));
  const LoraKept kept = linear_forward(step, layer, *x, *out, /*accumulate=*/false);
  if (!out->wanted) return out;
  step.tape->push([=] {
    if (const float* dy = Tape::gradient(*out)) linear_backward(step, layer, *x, kept, dy);
  });
  return out;
}

Slot* stream_to_add_to(Step& step, Slot* stream, bool wanted) {
  if (step.tape == nullptr) return stream;
  Slot* out = tensor::make_slot(step.arena, stream->rows, stream->width, wanted);
  tensor::copy(step.exec, stream->value, stream->count(), out->value);
  return out;
}

Slot* zero_slot(Step& step, int64_t rows, int64_t width) {
  Slot* out = tensor::make_slot(step.arena, rows, width, false);
  tensor::zero(step.exec, out->count(), out->value);
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
  Slot* out = stream_to_add_to(step, stream, stream->wanted || recorded(step, x, layer));
  const LoraKept kept = linear_forward(step, layer, *x, *out, /*accumulate=*/true);
  if (step.tape == nullptr || !out->wanted) return out;
  step.tape->push([=] {
    const float* dy = Tape::gradient(*out);
    if (dy == nullptr) return;
    linear_backward(step, layer, *x, kept, dy);
    pass_through(step.exec, *step.tape, *out, *stream);
  });
  return out;
}

}  // namespace collimate::model

#include "collimate/model/latent.h"

#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/recording.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {
namespace {

using shape::Part;

// Of the norms inside, whatever the config says of the others: DeepSeek's own code leaves them at this default.
constexpr float kEpsilon = 1e-6F;

Norm find_inner_norm(const Weights& weights, Part part, int segment) {
  return {weights.index_of(part, segment), -1, kEpsilon, 0};
}

// Channels of heads that go from one slot to another.
struct Channels {
  Slot* from = nullptr;
  int64_t first = 0, head = 0;  // in the slot they come from; head 0: one for all heads
  int64_t to = 0, to_head = 0;  // in the new one
  int64_t width = 0;
};

// A slot of the given width that these fill, with `heads` of each.
Slot* gather_channels(Step& step, int64_t width, int64_t heads, const std::vector<Channels>& all) {
  bool wanted = false;
  for (const Channels& some : all) wanted = wanted || (step.tape != nullptr && some.from->wanted);
  const int64_t rows = all.front().from->rows;
  Slot* out = tensor::make_slot(step.arena, rows, width, wanted);
  for (const Channels& some : all)
    tensor::copy_heads(step.exec, {rows, heads, some.width},
                       {some.from->value + some.first, some.from->width, some.head},
                       {out->value + some.to, width, some.to_head});
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    for (const Channels& some : all)
      if (some.from->wanted)
        tensor::add_heads(exec, {rows, heads, some.width}, {dy + some.to, width, some.to_head},
                          {tape->zeroed_target(*some.from) + some.first, some.from->width, some.head});
  });
  return out;
}

Slot* columns(Step& step, Slot* x, int64_t first, int64_t width) {
  return gather_channels(step, width, 1, {{.from = x, .first = first, .width = width}});
}

// q [T, heads head_dim], the shared key [T, rope_dim] and [T, heads (own key, value)] side by side.
Slot* join(Step& step, const Attention& a, Slot* q, Slot* shared, Slot* own) {
  const int64_t turned = shared->width, of_key = a.head_dim - turned, each = of_key + a.value_dim();
  const int64_t keys = a.query_width(), values = keys + a.kv_width();
  return gather_channels(step, values + a.value_width(), a.heads,
                         {{q, 0, a.head_dim, 0, a.head_dim, a.head_dim},
                          {shared, 0, 0, keys, a.head_dim, turned},
                          {own, 0, each, keys + turned, a.head_dim, of_key},
                          {own, of_key, each, values, a.value_dim(), a.value_dim()}});
}

}  // namespace

LatentLayer find_latent(const Weights& weights, int segment) {
  LatentLayer layer{.how = base::at(weights.shape().blocks, segment - 1).attention};
  if (layer.how.latent.q_rank > 0) {
    layer.query_down = find_linear(weights, Part::kQueryDown, segment);
    layer.query_norm = find_inner_norm(weights, Part::kQueryDownNorm, segment);
  }
  layer.query = find_linear(weights, Part::kQuery, segment);
  layer.down = find_linear(weights, Part::kKeyValueDown, segment);
  layer.norm = find_inner_norm(weights, Part::kKeyValueDownNorm, segment);
  layer.up = find_linear(weights, Part::kKeyValueUp, segment);
  return layer;
}

Slot* latent_heads(Step& step, const LatentLayer& layer, Slot* x) {
  const Attention& a = layer.how;
  const int64_t turned = a.latent.rope_dim;
  Slot* read = a.latent.q_rank > 0 ? normalize(step, layer.query_norm, linear(step, layer.query_down, x)) : x;
  Slot* q = linear(step, layer.query, read);
  turn(step, a, q, a.heads, a.head_dim);
  Slot* low = linear(step, layer.down, x);
  Slot* shared = columns(step, low, 0, turned);
  turn(step, a, shared, 1, turned);
  Slot* latent = normalize(step, layer.norm, columns(step, low, turned, a.latent.kv_rank));
  return join(step, a, q, shared, linear(step, layer.up, latent));
}

}  // namespace collimate::model

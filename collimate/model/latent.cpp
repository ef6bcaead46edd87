#include "collimate/model/latent.h"

#include <algorithm>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/model/kv_cache.h"
#include "collimate/model/recording.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {
namespace {

using shape::Part;

// The norms inside latent attention have this epsilon, whatever the config says of others: DeepSeek's own code leaves
// them at this default.
constexpr float kEpsilon = 1e-6F;

constexpr size_t kBlocksExpanded = kMostExpanded / tensor::KvLayout::kBlockTokens;

Norm find_inner_norm(const Weights& weights, Part part, int segment) {
  return {weights.index_of(part, segment), -1, kEpsilon, 0};
}

// Describes channels of heads that are copied from one slot to another.
struct Channels {
  Slot* from = nullptr;
  int64_t first = 0, head = 0;  // first channel, and step from head to head, in `from`; head 0: one for all heads
  int64_t to = 0, to_head = 0;  // the same two in the new slot
  int64_t width = 0;
};

// Returns a new slot of the given width that these channels fill, for `heads` heads each.
Slot* gather_channels(Step& step, int64_t width, int64_t heads, const std::vector<Channels>& all) {
  bool wanted = false;
  for (const Channels& some : all) wanted = wanted || some.from->wanted;
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

// Returns keys and values made of the shared key [T, rope_dim] and of each head's own key part and value [T, heads (own
// key, value)]; they lie behind q [T, heads head_dim] or, if it is null, alone.
Slot* join(Step& step, const Attention& a, Slot* q, Slot* shared, Slot* own) {
  const int64_t turned = shared->width, of_key = a.head_dim - turned, each = of_key + a.value_dim();
  const int64_t keys = q == nullptr ? 0 : a.query_width(), values = keys + a.kv_width();
  std::vector<Channels> all = {{shared, 0, 0, keys, a.head_dim, turned},
                               {own, 0, each, keys + turned, a.head_dim, of_key},
                               {own, of_key, each, values, a.value_dim(), a.value_dim()}};
  if (q != nullptr) all.push_back({q, 0, a.head_dim, 0, a.head_dim, a.head_dim});
  return gather_channels(step, values + a.value_width(), a.heads, all);
}

bool rounds(const Step& step) { return is_bf16(step.weights.options().compute); }

// A cache of a bf16 model keeps bf16, so that every forward rounds what a cache would keep.
void round(Step& step, Slot* x) {
  if (rounds(step)) tensor::round_bf16(step.exec, x->value, x->width, x->rows, x->width);
}

// Puts the step's latents into the cache. Where that rounds them, they are read back, so that they are as the cache
// keeps them, like those of earlier steps.
void keep_latents(Step& step, const tensor::KvLayout& kept, Slot* shared, Slot* latent) {
  const auto& runs = step.input.runs();
  tensor::append_kv(step.exec, kept, shared->value, shared->width, latent->value, latent->width, runs,
                    step.latent_storage);
  if (expanded_type(kept.type) != kept.type)
    tensor::read_kv(step.exec, kept, step.latent_storage, runs, shared->value, shared->width, latent->value,
                    latent->width);
}

// Makes keys and values of the tokens ahead of this step's from cached latents, and puts them where attention reads.
void expand_earlier(Step& step, const LatentLayer& layer) {
  const Attention& a = layer.how;
  const tensor::KvLayout kept = latent_layout(a, step.latent_type), read = kv_layout(a, step.kv_type);
  const std::span<const tensor::AttentionRun> blocks = step.earlier;
  for (size_t first = 0; first < blocks.size(); first += kBlocksExpanded) {
    const auto begin = blocks.begin() + static_cast<int64_t>(first);
    std::vector<tensor::AttentionRun> some(begin, begin + std::min<int64_t>(kBlocksExpanded, blocks.end() - begin));
    for (tensor::AttentionRun& run : some) run.first_row -= blocks[first].first_row;
    const int64_t rows = some.back().first_row + some.back().tokens;
    const tensor::Arena::Mark mark = step.arena.mark();
    Slot* shared = tensor::make_slot(step.arena, rows, a.latent.rope_dim, false);
    Slot* latent = tensor::make_slot(step.arena, rows, a.latent.kv_rank, false);
    tensor::read_kv(step.exec, kept, step.latent_storage, some, shared->value, shared->width, latent->value,
                    latent->width);
    const Slot* made = join(step, a, nullptr, shared, linear(step, layer.up, latent));
    if (rounds(step)) tensor::round_bf16(step.exec, made->value, made->width, rows, made->width);
    tensor::append_kv(step.exec, read, made->value, made->width, made->value + a.kv_width(), made->width, some,
                      step.kv_storage);
    step.arena.rewind(mark);
  }
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
  Slot* q = linear(step, layer.query, spread(step, read));
  turn(step, a, q, a.heads, a.head_dim);
  Slot* low = linear(step, layer.down, x);
  Slot* shared = columns(step, low, 0, turned);
  turn(step, a, shared, 1, turned);
  round(step, shared);
  Slot* latent = normalize(step, layer.norm, columns(step, low, turned, a.latent.kv_rank));
  round(step, latent);
  if (step.latent_storage != nullptr) {
    keep_latents(step, latent_layout(a, step.latent_type), shared, latent);
    expand_earlier(step, layer);  // another sequence's tokens of this step may be among them
  }
  return join(step, a, q, spread(step, shared), linear(step, layer.up, spread(step, latent)));
}

}  // namespace collimate::model

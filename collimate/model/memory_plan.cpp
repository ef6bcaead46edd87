#include "collimate/model/memory_plan.h"

#include <algorithm>

#include "collimate/shape/param_spec.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/tape.h"

namespace collimate::model {
namespace {

using shape::ModelShape;
using tensor::allocated_bytes;

constexpr int64_t kFloat = sizeof(float);

// Takes from an arena, as tensor::Arena rounds them, in floats.
struct Takes {
  int64_t tokens;
  int64_t floats = 0;

  Takes& array(int64_t width) {
    floats += (tokens * width + 15) / 16 * 16;
    return *this;
  }
  Takes& slot(int64_t width) {
    floats += (static_cast<int64_t>(sizeof(tensor::Slot)) + 63) / 64 * 16;
    return array(width);
  }
};

// Widths of what a block makes.
struct Widths {
  explicit Widths(const ModelShape& s)
      : hidden(s.hidden),
        q(s.heads * s.head_dim),
        qkv(q + 2 * s.kv_heads * s.head_dim),
        heads(s.heads),
        inner(s.intermediate),
        up((s.activation == "silu" ? 2 : 1) * s.intermediate),
        statistics(s.family == "gpt2" ? 2 : 1) {}
  int64_t hidden, q, qkv, heads, inner, up;
  int64_t statistics;  // numbers per row that a norm keeps
};

void recorded_norm(Takes& takes, const Widths& w) {
  takes.slot(w.hidden);
  for (int64_t i = 0; i < w.statistics; ++i) takes.array(1);
}

int64_t recorded_block(int64_t tokens, const Widths& w) {
  Takes takes{tokens};
  recorded_norm(takes, w);
  takes.slot(w.qkv).slot(w.q).array(w.heads).slot(w.hidden);
  recorded_norm(takes, w);
  return takes.slot(w.up).slot(w.inner).slot(w.hidden).floats;
}

int64_t plain_block(int64_t tokens, const Widths& w) {
  return Takes{tokens}.slot(w.hidden).slot(w.qkv).slot(w.q).slot(w.hidden).slot(w.up).slot(w.inner).floats;
}

int64_t kv_floats(const ModelShape& s, int64_t blocks) {
  return blocks * tensor::KvLayout{static_cast<int>(s.kv_heads), static_cast<int>(s.head_dim)}.block_floats();
}

}  // namespace

std::vector<tensor::MemoryItem> weights_memory(const ModelShape& shape, const WeightsOptions& options) {
  const auto specs = shape::param_specs(shape);
  int64_t master = 0, panels = 0;
  for (const int64_t floats : shape::segment_floats(specs)) master += allocated_bytes(floats * kFloat);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].fused == 0 || !shape::is_linear(shape, specs, i)) continue;
    int64_t rows = 0;
    for (size_t k = i; k < i + static_cast<size_t>(specs[i].fused); ++k) rows += specs[k].sizes[0];
    panels += allocated_bytes(
        tensor::LinearPanels::bytes_for(rows, specs[i].sizes[1], options.compute, options.reduction_chunks));
  }
  std::vector<tensor::MemoryItem> items = {{values_purpose(options), master}, {"panels", panels}};
  if (!options.trained) return items;
  items.push_back({"gradient", master});
  items.push_back({"optimizer", 2 * master});
  return items;
}

int64_t kv_cache_bytes(const ModelShape& shape, int64_t blocks) {
  return shape.layers * allocated_bytes(kv_floats(shape, blocks) * kFloat);
}

PassFloats inference_floats(const ModelShape& shape, int64_t tokens, int64_t blocks) {
  const Widths w(shape);
  return {.workspace = kv_floats(shape, blocks) + Takes{tokens}.slot(w.hidden).floats + plain_block(tokens, w)};
}

PassFloats training_floats(const ModelShape& shape, int64_t tokens, int64_t blocks, Recompute recompute) {
  const Widths w(shape);
  Takes norm{tokens};
  recorded_norm(norm, w);
  const int64_t stream = Takes{tokens}.slot(w.hidden).floats, block = recorded_block(tokens, w);
  PassFloats floats;
  floats.workspace = kv_floats(shape, blocks);
  floats.activations = stream + shape.layers * block + norm.floats;
  if (recompute == Recompute::kFull) {
    floats.activations = (shape.layers + 2) * stream;
    floats.workspace += std::max(block, 2 * stream + plain_block(tokens, w));
  }
  floats.gradients = Takes{tokens}
                         .array(w.hidden)
                         .array(w.inner)
                         .array(w.up)
                         .array(w.hidden)
                         .array(w.q)
                         .array(w.qkv)
                         .array(w.hidden)
                         .floats;
  return floats;
}

std::vector<tensor::MemoryItem> pass_memory(const ModelShape& shape, int64_t tokens, const PassFloats& floats) {
  const auto arena = [](int64_t count) { return count == 0 ? 0 : allocated_bytes(count * kFloat); };
  std::vector<tensor::MemoryItem> items = {
      {"workspace", arena(floats.workspace) + allocated_bytes(tokens * shape.hidden * kFloat)}};
  if (floats.activations > 0) items.push_back({"activations", arena(floats.activations) + arena(floats.gradients)});
  return items;
}

int64_t recorded_logits_bytes(const ModelShape& shape, int64_t predicted) {
  const int64_t bytes = predicted * shape.vocabulary * kFloat;
  return shape.head != shape::Head::kLanguageModel || bytes > kMostRecordedLogitBytes ? 0 : allocated_bytes(bytes);
}

int64_t backward_scratch_bytes(const ModelShape& shape, int64_t tokens) {
  const Widths w(shape);
  return allocated_bytes(std::max({tensor::linear_backward_scratch_bytes(tokens, w.up, w.hidden),
                                   tensor::linear_backward_scratch_bytes(tokens, w.hidden, w.inner),
                                   tensor::linear_backward_scratch_bytes(tokens, w.qkv, w.hidden)}));
}

}  // namespace collimate::model

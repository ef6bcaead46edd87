#include "collimate/model/memory_plan.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/model/kv_cache.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/ops/attention.h"
#include "collimate/tensor/ops/linear.h"

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
  Takes& arrays(std::span<const int64_t> widths) {
    for (const int64_t width : widths) array(width);
    return *this;
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
  takes.array(w.hidden);
  for (int64_t i = 0; i < w.statistics; ++i) takes.array(1);
}

int64_t recorded_block(int64_t tokens, const Widths& w, std::span<const int64_t> adapters) {
  Takes takes{tokens};
  recorded_norm(takes, w);
  takes.array(w.qkv).array(w.q).array(w.heads).array(w.hidden);
  recorded_norm(takes, w);
  return takes.array(w.up).array(w.inner).array(w.hidden).arrays(adapters).floats;
}

int64_t plain_block(int64_t tokens, const Widths& w, std::span<const int64_t> adapters) {
  Takes takes{tokens};
  takes.array(w.hidden).array(w.qkv).array(w.q).array(w.hidden).array(w.up).array(w.inner);
  return takes.arrays(adapters).floats;
}

// The floats are of scratch storage.
int64_t kv_floats(const ModelShape& s, int64_t blocks) {
  return blocks * tensor::kv_block_floats({}, kv_layout(s, tensor::ComputeType::kFloat32));
}

// Bytes of the segments that are trained, and of the others.
std::pair<int64_t, int64_t> value_bytes(const ModelShape& shape, const WeightsOptions& options,
                                        const std::vector<shape::ParamSpec>& specs) {
  const std::vector<int64_t> floats = shape::segment_floats(specs);
  std::vector<bool> trained(floats.size(), false);
  for (const shape::ParamSpec& spec : specs)
    if (options.trained && is_changed_by_training(shape, options.lora, spec)) base::at(trained, spec.segment) = true;
  std::pair<int64_t, int64_t> bytes = {0, 0};
  for (size_t s = 0; s < floats.size(); ++s)
    (trained[s] ? bytes.first : bytes.second) += allocated_bytes(floats[s] * kFloat);
  return bytes;
}

}  // namespace

std::vector<tensor::MemoryItem> weights_memory(const ModelShape& shape, const WeightsOptions& options) {
  const auto specs = model_params(shape, options.lora);
  const auto [trained, frozen] = value_bytes(shape, options, specs);
  int64_t panels = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].fused == 0 || !shape::is_linear(shape, specs, i)) continue;
    const int64_t rows = shape::fused_rows(specs, static_cast<int64_t>(i));
    panels +=
        allocated_bytes(tensor::packed_bytes({}, rows, specs[i].sizes[1], options.compute, options.reduction_chunks));
  }
  std::vector<tensor::MemoryItem> items;
  if (trained > 0) items.push_back({values_purpose(true), trained});
  if (frozen > 0) items.push_back({values_purpose(false), frozen});
  items.push_back({"panels", panels});
  if (trained == 0) return items;
  items.push_back({"gradient", trained});
  items.push_back({"optimizer", 2 * trained});
  return items;
}

int64_t kv_cache_bytes(const ModelShape& shape, tensor::ComputeType compute, int64_t blocks) {
  return shape.layers * allocated_bytes(blocks * tensor::kv_block_floats({}, kv_layout(shape, compute)) * kFloat);
}

PassFloats inference_floats(const ModelShape& shape, int64_t tokens, int64_t blocks,
                            std::span<const int64_t> adapters) {
  const Widths w(shape);
  const int64_t stream = Takes{tokens}.array(w.hidden).floats;
  return {.workspace = kv_floats(shape, blocks) + stream + plain_block(tokens, w, adapters)};
}

PassFloats training_floats(const ModelShape& shape, int64_t tokens, int64_t blocks, Recompute recompute,
                           std::span<const int64_t> adapters) {
  const Widths w(shape);
  Takes norm{tokens};
  recorded_norm(norm, w);
  const int64_t stream = Takes{tokens}.array(w.hidden).floats, block = recorded_block(tokens, w, adapters);
  PassFloats floats;
  floats.workspace = kv_floats(shape, blocks);
  floats.activations = stream + shape.layers * block + norm.floats;
  if (recompute == Recompute::kFull) {
    floats.activations = (shape.layers + 2) * stream;
    floats.workspace += std::max(block, 2 * stream + plain_block(tokens, w, adapters));
  }
  Takes gradients{tokens};
  gradients.array(w.hidden).array(w.inner).array(w.up).array(w.hidden).array(w.q).array(w.qkv).array(w.hidden);
  for (const int64_t width : adapters) gradients.array(width);
  floats.gradients = gradients.floats;
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

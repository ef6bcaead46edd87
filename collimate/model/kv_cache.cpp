#include "collimate/model/kv_cache.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::model {
namespace {

int64_t block_bytes(const tensor::Exec& exec, const tensor::KvLayout& layout) {
  return tensor::kv_block_floats(exec, layout) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

tensor::KvType kv_type(tensor::ComputeType compute) {
  return is_bf16(compute) ? tensor::KvType::kBFloat16 : tensor::KvType::kFloat32;
}

tensor::KvLayout kv_layout(const shape::Attention& a, tensor::KvType type) {
  return {static_cast<int>(a.kv_heads), static_cast<int>(a.head_dim), type, static_cast<int>(a.value_dim())};
}

tensor::KvLayout latent_layout(const shape::Attention& a, tensor::KvType type) {
  return {1, static_cast<int>(a.latent.rope_dim), type, static_cast<int>(a.latent.kv_rank)};
}

tensor::KvType expanded_type(tensor::KvType kept) {
  return kept == tensor::KvType::kBFloat16 ? kept : tensor::KvType::kFloat32;
}

std::vector<tensor::KvLayout> kv_layouts(const shape::ModelShape& shape, tensor::KvType type) {
  std::vector<tensor::KvLayout> layouts;
  for (const shape::Block& block : shape.blocks)
    layouts.push_back(block.attention.latent.cached ? latent_layout(block.attention, type)
                                                    : kv_layout(block.attention, type));
  if (shape::keeps_latents(shape)) layouts.push_back(kv_layout(shape.blocks.front().attention, expanded_type(type)));
  return layouts;
}

bool has_layer(const shape::ModelShape& shape, size_t layer) {
  return layer >= shape.blocks.size() || shape.has_block(static_cast<int64_t>(layer));
}

KvCache::KvCache(const shape::ModelShape& shape, tensor::KvType type, int64_t blocks, const tensor::Exec& exec)
    : exec_(exec),
      type_(type),
      layouts_(kv_layouts(shape, type)),
      blocks_(blocks),
      keeps_latents_(shape::keeps_latents(shape)) {
  COLLIMATE_CHECK(blocks > 0, "{} blocks", blocks);
  for (size_t l = 0; l < layouts_.size(); ++l)
    layer_bytes_.push_back(has_layer(shape, l) ? blocks_ * block_bytes(exec, layouts_[l]) : 0);
  take();
}

void KvCache::take() {
  if (!layers_.empty()) return;
  const tensor::MemoryScope tagged("kv_cache");
  for (const int64_t bytes : layer_bytes_) layers_.emplace_back(bytes, *exec_.device);
}

void KvCache::release() {
  for (tensor::Buffer& layer : layers_) layer.discard();
  layers_.clear();
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const tensor::Buffer& layer : layers_) total += layer.bytes();
  return total;
}

float* KvCache::layer(int index) { return base::at(layers_, index).floats(); }
float* KvCache::expanded() { return keeps_latents_ ? layers_.back().floats() : nullptr; }

void KvCache::copy_block(int32_t from, int32_t to) {
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    if (layers_[layer].bytes() > 0) tensor::copy_kv_block(exec_, layouts_[layer], from, to, layers_[layer].floats());
}

int64_t kv_block_bytes(const shape::ModelShape& shape, tensor::KvType type) {
  int64_t bytes = 0;
  const std::vector<tensor::KvLayout> layouts = kv_layouts(shape, type);
  for (size_t l = 0; l < layouts.size(); ++l) bytes += has_layer(shape, l) ? block_bytes({}, layouts[l]) : 0;
  return bytes;
}

}  // namespace collimate::model

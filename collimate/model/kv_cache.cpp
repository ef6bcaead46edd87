#include "collimate/model/kv_cache.h"

#include "collimate/base/error.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::model {

static_assert(KvCache::kBlockTokens == tensor::KvLayout::kBlockTokens);

KvCache::KvCache(const shape::ModelShape& shape, int64_t blocks) : blocks_(blocks) {
  COLLIMATE_CHECK(blocks > 0, "{} blocks", blocks);
  const tensor::KvLayout layout{static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim)};
  block_floats_ = layout.block_floats();
  const tensor::MemoryScope tagged("kv_cache");
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    layers_.emplace_back(blocks_ * block_floats_ * static_cast<int64_t>(sizeof(float)));
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const tensor::Buffer& layer : layers_) total += layer.bytes();
  return total;
}

float* KvCache::layer(int index) { return layers_.at(static_cast<size_t>(index)).floats(); }

}  // namespace collimate::model

#include "collimate/model/kv_cache.h"

#include "collimate/base/error.h"

namespace collimate::model {

tensor::KvLayout kv_layout(const shape::ModelShape& shape, tensor::ComputeType compute) {
  return {static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim), is_bf16(compute)};
}

KvCache::KvCache(const shape::ModelShape& shape, tensor::ComputeType compute, int64_t blocks, const tensor::Exec& exec)
    : layout_(kv_layout(shape, compute)), blocks_(blocks) {
  COLLIMATE_CHECK(blocks > 0, "{} blocks", blocks);
  const tensor::MemoryScope tagged("kv_cache");
  for (int64_t layer = 0; layer < shape.layers; ++layer)
    layers_.emplace_back(blocks_ * tensor::kv_block_floats(exec, layout_) * static_cast<int64_t>(sizeof(float)),
                         *exec.device);
}

int64_t KvCache::bytes() const {
  int64_t total = 0;
  for (const tensor::Buffer& layer : layers_) total += layer.bytes();
  return total;
}

float* KvCache::layer(int index) { return layers_.at(static_cast<size_t>(index)).floats(); }

}  // namespace collimate::model

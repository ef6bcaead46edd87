#pragma once

#include <cstdint>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/allocator.h"

namespace collimate::model {

// Storage of keys and values in blocks of kBlockTokens tokens, one array per layer; block b of layer l starts at
// layer(l) + b * block_floats(). Inside a block the layout is the attention kernel's (tensor/ops/attention.h): training
// fills the same layout, so that decoding and training read keys in one order. Owns the memory; ids are handed out by
// generate's block pool, not here.
class KvCache {
 public:
  static constexpr int kBlockTokens = 16;

  // Allocates blocks * layers * block_floats floats. Throws RunError naming the bytes when they are not there.
  KvCache(const shape::ModelShape& shape, int64_t blocks);

  int64_t blocks() const { return blocks_; }
  int64_t block_floats() const { return block_floats_; }
  int64_t bytes() const;
  float* layer(int index);

 private:
  int64_t blocks_ = 0;
  int64_t block_floats_ = 0;
  std::vector<tensor::Buffer> layers_;
};

}  // namespace collimate::model

#pragma once

#include <cstdint>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/compute_type.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::model {

// Returns the type in which keys and values are kept unless another one is asked for: bf16 for a model whose products
// are bf16, which rounds them to bf16 everywhere, else fp32.
tensor::KvType kv_type(tensor::ComputeType compute);

// Returns how a block's attention reads keys and values.
tensor::KvLayout kv_layout(const shape::Attention& attention, tensor::KvType type);
// Returns how a block keeps latents: the key that all heads share as the key, the latent as the value.
tensor::KvLayout latent_layout(const shape::Attention& attention, tensor::KvType type);
// Returns the type of keys and values that are made of latents of type `kept`. It is not int8 or fp8, so that they are
// not rounded to one byte a second time.
tensor::KvType expanded_type(tensor::KvType kept);
// Returns the layouts of a cache's arrays, one for each block of the model in order; a pipeline stage has memory for
// its own blocks alone. Where blocks keep latents one array follows, for the keys and values that a step makes of them,
// one block after the other.
std::vector<tensor::KvLayout> kv_layouts(const shape::ModelShape& shape, tensor::KvType type);
// Returns whether this rank's stage has memory for that array.
bool has_layer(const shape::ModelShape& shape, size_t layer);

// Stores keys and values on the exec's device in blocks of kBlockTokens tokens, one array per layer. The attention
// operations decide how they lie there (tensor/ops/attention.h). Training fills the same layout, so that decoding and
// training read keys in one order. With int8 and fp8, to which nothing else rounds, log-probs differ from training's.
// The cache owns the memory; generate's block pool hands out the block ids.
class KvCache {
 public:
  static constexpr int kBlockTokens = tensor::KvLayout::kBlockTokens;

  // Allocates `blocks` blocks per layer. Throws RunError naming the bytes when there is not enough memory.
  KvCache(const shape::ModelShape& shape, tensor::KvType type, int64_t blocks, const tensor::Exec& exec = {});

  const std::vector<tensor::KvLayout>& layouts() const { return layouts_; }
  tensor::KvType type() const { return type_; }
  int64_t blocks() const { return blocks_; }
  int64_t bytes() const;
  float* layer(int index);
  // Returns the array of keys and values that are made of latents; null in a cache without latents.
  float* expanded();
  // release() gives the memory back. take() allocates it again, with undefined contents, if it was given back. No other
  // function may be called between the two.
  void release();
  void take();
  // Copies one block over another, in every layer.
  void copy_block(int32_t from, int32_t to);

 private:
  tensor::Exec exec_;
  tensor::KvType type_;
  std::vector<tensor::KvLayout> layouts_;
  int64_t blocks_ = 0;
  bool keeps_latents_ = false;
  std::vector<int64_t> layer_bytes_;
  std::vector<tensor::Buffer> layers_;  // empty while the memory is released
};

// Returns the bytes that one block takes in all layers together, on the default device.
int64_t kv_block_bytes(const shape::ModelShape& shape, tensor::KvType type);

}  // namespace collimate::model

#pragma once

#include <cstdint>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/compute_type.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::model {

// Keys and values are kept so where nothing else was asked for: of a model whose products are bf16 in bf16, to which it
// rounds them everywhere.
tensor::KvType kv_type(tensor::ComputeType compute);

// How a block's attention reads keys and values.
tensor::KvLayout kv_layout(const shape::Attention& attention, tensor::KvType type);
// How a block keeps latents: as keys those parts that all heads share, as values the latents.
tensor::KvLayout latent_layout(const shape::Attention& attention, tensor::KvType type);
// Keys and values that are made of latents of that type; they are not rounded to one byte a second time.
tensor::KvType expanded_type(tensor::KvType kept);
// The arrays of a cache of a model of this shape, in the order of its blocks, of which a stage has its own alone. Where
// these keep latents there is one array more: keys and values that a step makes of them, one block after the other.
std::vector<tensor::KvLayout> kv_layouts(const shape::ModelShape& shape, tensor::KvType type);
// Whether this rank's stage has that array.
bool has_layer(const shape::ModelShape& shape, size_t layer);

// Storage of keys and values on the exec's device in blocks of kBlockTokens tokens, one array per layer. How they lie
// is the attention operations' affair (tensor/ops/attention.h): training fills the same layout, so that decoding and
// training read keys in one order. In int8 and fp8, to which nothing else rounds, log-probs differ from training's.
// Owns the memory; ids are handed out by generate's block pool, not here.
class KvCache {
 public:
  static constexpr int kBlockTokens = tensor::KvLayout::kBlockTokens;

  // Allocates `blocks` blocks a layer. Throws RunError naming the bytes when they are not there.
  KvCache(const shape::ModelShape& shape, tensor::KvType type, int64_t blocks, const tensor::Exec& exec = {});

  const std::vector<tensor::KvLayout>& layouts() const { return layouts_; }
  tensor::KvType type() const { return type_; }
  int64_t blocks() const { return blocks_; }
  int64_t bytes() const;
  float* layer(int index);
  // The array of keys and values that are made of latents; null where none are kept.
  float* expanded();
  // Gives the memory back, and takes it again where it was given back, with undefined contents. Nothing else is asked
  // of it between.
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
  std::vector<tensor::Buffer> layers_;  // none while it is released
};

// One block takes so many bytes in all layers.
int64_t kv_block_bytes(const shape::ModelShape& shape, tensor::KvType type);

}  // namespace collimate::model

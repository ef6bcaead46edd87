#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sequence.h"
#include "collimate/model/model.h"
#include "collimate/tensor/allocator.h"

namespace collimate::generate {

// Gives the bytes of RoutedBlocks of so many blocks, as the allocator counts them; 0 of a model without experts.
int64_t routed_bytes(const shape::ModelShape& shape, int64_t blocks);

// The experts that a mixture's routers chose for the tokens of a cache, block by block as its keys and values: whoever
// shares a block, or takes it from the prefix cache, shares these. On the host, where memory reports call them
// "routed_experts".
class RoutedBlocks {
 public:
  // Nothing is kept of a model without experts, nor unless it is asked for.
  RoutedBlocks(const shape::ModelShape& shape, int64_t blocks, bool asked);

  bool keeps() const { return width_ > 0; }
  // As KvCache.
  void release() { kept_.discard(); }
  void take();
  // Keeps what a step chose for the tokens that it ran, where `tables` has their blocks.
  void put(const model::TokenBatch& tokens, std::span<const std::vector<int32_t>> tables,
           const model::RoutedExperts& chosen);
  void copy_block(int32_t from, int32_t to);
  // Adds those of computed tokens that the sequence has not got yet. Its blocks must be there.
  void append_to(Sequence& sequence) const;

 private:
  using Expert = model::RoutedExperts::value_type;

  Expert* at(int64_t block, int64_t token) const {
    return static_cast<Expert*>(kept_.data()) + (block * kBlockTokens + token) * width_;
  }

  int64_t width_ = 0;  // routers times experts of a token
  int64_t bytes_ = 0;
  tensor::Buffer kept_;
};

}  // namespace collimate::generate

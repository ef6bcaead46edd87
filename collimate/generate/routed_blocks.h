#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sequence.h"
#include "collimate/model/model.h"
#include "collimate/tensor/allocator.h"

namespace collimate::generate {

// Returns the bytes of a RoutedBlocks of so many blocks, as the allocator counts them; 0 for a model without experts.
int64_t routed_bytes(const shape::ModelShape& shape, int64_t blocks);

// Keeps the experts that a mixture's routers chose for the tokens of a key-value cache, in the same blocks as the keys
// and values: a sequence that shares a block, or takes it from the prefix cache, shares its experts too. The memory is
// on the host, and memory reports call it "routed_experts".
class RoutedBlocks {
 public:
  // Keeps nothing for a model without experts, or if `asked` is false.
  RoutedBlocks(const shape::ModelShape& shape, int64_t blocks, bool asked);

  bool keeps() const { return width_ > 0; }
  // Give the memory back and take it again, as KvCache's functions of these names.
  void release() { kept_.discard(); }
  void take();
  // Keeps the experts that a step chose for the tokens that it ran, in the blocks that `tables` gives them.
  void put(const model::TokenBatch& tokens, std::span<const std::vector<int32_t>> tables,
           const model::RoutedExperts& chosen);
  void copy_block(int32_t from, int32_t to);
  // Adds the experts of the sequence's computed tokens that it does not have yet. The sequence must still have the
  // blocks of these tokens.
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

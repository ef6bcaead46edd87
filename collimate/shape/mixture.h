#pragma once

#include <algorithm>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

inline bool has_experts(const Block& block) { return block.mlp.experts.count > 0; }

// The experts of a mixture's blocks, which all have the same; null of a dense model.
inline const Experts* experts_of(const ModelShape& shape) {
  const auto found = std::ranges::find_if(shape.blocks, has_experts);
  return found == shape.blocks.end() ? nullptr : &found->mlp.experts;
}
// One router a block that has experts.
inline int64_t routers_of(const ModelShape& shape) { return std::ranges::count_if(shape.blocks, has_experts); }

}  // namespace collimate::shape

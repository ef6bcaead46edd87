#pragma once

#include <algorithm>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

inline bool has_experts(const Block& block) { return block.mlp.experts.count > 0; }

// Returns the experts of a mixture's blocks, which are alike in all of them; null for a dense model.
inline const Experts* experts_of(const ModelShape& shape) {
  const auto found = std::ranges::find_if(shape.blocks, has_experts);
  return found == shape.blocks.end() ? nullptr : &found->mlp.experts;
}
// Returns the number of routers, one for each block that has experts.
inline int64_t routers_of(const ModelShape& shape) { return std::ranges::count_if(shape.blocks, has_experts); }

}  // namespace collimate::shape

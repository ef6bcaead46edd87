#pragma once

#include <algorithm>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// The experts of a mixture's blocks, which all have the same; null of a dense model.
inline const Experts* experts_of(const ModelShape& shape) {
  const auto found = std::find_if(shape.blocks.begin(), shape.blocks.end(),
                                  [](const Block& block) { return block.mlp.experts.count > 0; });
  return found == shape.blocks.end() ? nullptr : &found->mlp.experts;
}

}  // namespace collimate::shape

#pragma once

#include "collimate/graph/placement.h"

namespace collimate::graph {

// This is the highest stage of ZeRO whose ranks still hold all weights.
inline constexpr int kMostWholeZero = 2;

// Says whether every rank of a function of this layout holds all of its model's weights.
inline bool holds_all_weights(const Layout& layout) {
  return layout.tp == 1 && layout.pp == 1 && layout.cp == 1 && layout.ep == 1 && layout.zero <= kMostWholeZero;
}

}  // namespace collimate::graph

#pragma once

#include <cstdint>

#include "collimate/shape/rank.h"

namespace collimate::shape {

// A ShareRank is one of the ranks that have the same weights and keep a share of them each (stage 3 of ZeRO).
using ShareRank = RankOf<struct SharedWeights>;

// A Share is the floats [begin, end) of a flat segment that one rank updates where ranks share an optimizer (ZeRO:
// Rajbhandari et al. 2020, arXiv 1910.02054). In rank order each rank has a piece of equal length. The last one also
// has the rest, which is shorter than one chunk per rank.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t piece = 0;
  int64_t count() const { return end - begin; }
};

// The length of a piece is a multiple of so many floats, the chunk in which a gradient's norm is summed.
inline constexpr int64_t kShareChunk = 4096;

// Returns the share of `rank` in a segment of so many floats.
Share share_of(int64_t floats, int rank, int ranks);
// Returns the part of a segment that a rank keeps where ranks share the weights too (stage 3). A segment with less than
// one chunk per rank is kept whole by each: gathering it would take as long as gathering one ten times its size.
Share kept_of(int64_t floats, int rank, int ranks);

}  // namespace collimate::shape

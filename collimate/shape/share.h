#pragma once

#include <cstdint>

#include "collimate/shape/rank.h"

namespace collimate::shape {

// One of the ranks that keep shares of what they have alike (stage 3 of ZeRO).
using ShareRank = RankOf<struct SharedWeights>;

// The floats [begin, end) of a flat segment that one rank updates where ranks share an optimizer (ZeRO: Rajbhandari et
// al. 2020, arXiv 1910.02054). Every rank has a piece of equal length, in rank order; the last one has the rest too,
// which is shorter than a chunk a rank.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t piece = 0;
  int64_t count() const { return end - begin; }
};

// Pieces are so many floats times a whole number: the chunks in which a gradient's norm is summed.
inline constexpr int64_t kShareChunk = 4096;

// The share of `rank` in a segment of so many floats.
Share share_of(int64_t floats, int rank, int ranks);
// The part of a segment that it keeps where the ranks share the weights too (stage 3): of a segment with less than a
// chunk a rank each keeps all, as to gather it would take as long as to gather one ten times its size.
Share kept_of(int64_t floats, int rank, int ranks);

}  // namespace collimate::shape

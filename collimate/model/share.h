#pragma once

#include <cstdint>

namespace collimate::model {

// The floats [begin, end) of a flat segment that one rank updates where ranks share an optimizer (ZeRO: Rajbhandari et
// al. 2020, arXiv 1910.02054). Every rank has a piece of equal length, in rank order; the last one has the rest too,
// which is shorter than a chunk a rank.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t piece = 0;
  int64_t count() const { return end - begin; }
};

// The share of `rank` in a segment of so many floats. Pieces are whole chunks of tensor::squares_of_chunks, so that the
// gradient's norm has the same bits however many ranks share it.
Share share_of(int64_t floats, int rank, int ranks);

}  // namespace collimate::model

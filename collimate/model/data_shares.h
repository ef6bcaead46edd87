#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collimate/model/rank_line.h"
#include "collimate/model/share.h"

namespace collimate::model {

// Each rank has its own piece of `all`, of equal length, and the last one the rest: all of it becomes known to all.
void exchange_pieces(comm::Group& group, std::span<std::byte> all, int64_t piece_bytes, double deadline_seconds);

// The ranks that share the weights of one model (stage 3 of ZeRO): each keeps its part of every segment, and a segment
// is whole on all of them while a pass reads it (Weights::hold). They hold the same segments in the same order. One
// rank by default, which keeps all.
struct DataShares : RankLine {
  int rank = 0;
  int ranks = 1;
  bool several() const { return ranks > 1; }
  // The part of a segment of so many floats that this rank keeps (shape::kept_of).
  Share kept(int64_t floats) const;
  // `all` [floats of a segment] has what this rank keeps; it becomes what all of them do.
  void gather(std::span<float> all) const;
};

}  // namespace collimate::model

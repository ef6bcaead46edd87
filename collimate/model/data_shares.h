#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collimate/model/rank_line.h"
#include "collimate/model/share.h"

namespace collimate::model {

// Makes `all` known to all ranks. Each rank has filled its own piece, all of piece_bytes, and the last rank also the
// rest that follows the pieces.
void exchange_pieces(comm::Group& group, std::span<std::byte> all, int64_t piece_bytes, double deadline_seconds);

// These ranks share the weights of one model (stage 3 of ZeRO): each keeps its part of every segment, and a segment is
// whole on all of them while a pass reads it (Weights::hold). They hold the same segments in the same order. By default
// there is one rank, which keeps all.
struct DataShares : RankLine {
  int rank = 0;
  int ranks = 1;
  bool several() const { return ranks > 1; }
  // Returns the part of a segment of `floats` floats that this rank keeps (shape::kept_of).
  Share kept(int64_t floats) const;
  // Fills in the other ranks' parts of `all` [floats of a segment], where this rank has filled the part that it keeps.
  void gather(std::span<float> all) const;
};

}  // namespace collimate::model

#include "collimate/shape/share.h"

namespace collimate::shape {

Share share_of(int64_t floats, int rank, int ranks) {
  const int64_t piece = floats / kShareChunk / ranks * kShareChunk;
  return {piece * rank, rank + 1 == ranks ? floats : piece * (rank + 1), piece};
}

Share kept_of(int64_t floats, int rank, int ranks) {
  const Share share = share_of(floats, rank, ranks);
  return share.piece > 0 ? share : share_of(floats, 0, 1);
}

}  // namespace collimate::shape

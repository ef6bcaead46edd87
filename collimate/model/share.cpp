#include "collimate/model/share.h"

#include "collimate/tensor/ops/optimizer.h"

namespace collimate::model {

Share share_of(int64_t floats, int rank, int ranks) {
  const int64_t piece = floats / tensor::kSquaresChunk / ranks * tensor::kSquaresChunk;
  return {piece * rank, rank + 1 == ranks ? floats : piece * (rank + 1), piece};
}

}  // namespace collimate::model

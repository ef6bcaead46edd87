#include <algorithm>

#include "collimate/comm/group.h"

namespace collimate::comm {

size_t PieceTable::out_bytes(size_t rank) const { return out_begin(rank, size); }
size_t PieceTable::in_bytes(size_t rank) const { return in_begin(size, rank); }

size_t PieceTable::out_begin(size_t from, size_t to) const {
  size_t begin = 0;
  for (size_t t = 0; t < to; ++t) begin += at(from, t);
  return begin;
}

size_t PieceTable::in_begin(size_t from, size_t to) const {
  size_t begin = 0;
  for (size_t f = 0; f < from; ++f) begin += at(f, to);
  return begin;
}

size_t PieceTable::longest() const { return *std::ranges::max_element(bytes); }

}  // namespace collimate::comm

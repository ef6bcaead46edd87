#pragma once

#include <cstdint>
#include <vector>

#include "collimate/tensor/allocator.h"

namespace collimate::tensor {

// Memory that is taken piece by piece and released all at once. Pieces never move; chunks stay with the arena between
// steps, so that a steady step allocates nothing. Not thread-safe.
class Arena {
 public:
  struct Mark {
    size_t chunk = 0;
    int64_t offset = 0;
  };

  // Room for so many floats in one chunk, where they do not fit already; nothing may be taken. Without it chunks
  // double.
  void reserve(int64_t floats);
  // 64-byte aligned, undefined contents.
  void* take_bytes(int64_t bytes);
  float* take(int64_t floats) { return static_cast<float*>(take_bytes(floats * static_cast<int64_t>(sizeof(float)))); }

  Mark mark() const { return at_; }
  // Releases everything taken since the mark.
  void rewind(Mark mark) { at_ = mark; }
  void reset() { at_ = {}; }
  // Gives the chunks back to the allocator.
  void release();
  int64_t bytes() const;

 private:
  std::vector<Buffer> chunks_;
  Mark at_;
};

}  // namespace collimate::tensor

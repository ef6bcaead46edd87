#include "collimate/tensor/arena.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kFirstChunkBytes = 1 << 18;
constexpr int64_t kLargestStepBytes = int64_t{64} << 20;

}  // namespace

void Arena::reserve(int64_t floats) {
  const int64_t wanted = floats * static_cast<int64_t>(sizeof(float));
  COLLIMATE_CHECK(at_.chunk == 0 && at_.offset == 0, "reserving an arena in use");
  if (wanted == 0 || (!chunks_.empty() && chunks_.front().bytes() >= wanted)) return;
  for (Buffer& chunk : chunks_) chunk.discard();
  chunks_.clear();
  // All of the block that is counted anyway, so that a slightly larger step does not touch new pages.
  chunks_.emplace_back(allocated_bytes(wanted) - allocated_bytes(0));
}

void* Arena::take_bytes(int64_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  for (;; ++at_.chunk, at_.offset = 0) {
    if (at_.chunk == chunks_.size()) {
      const int64_t grown =
          chunks_.empty() ? kFirstChunkBytes : std::min(2 * chunks_.back().bytes(), kLargestStepBytes);
      chunks_.emplace_back(std::max(bytes, grown));
    }
    const Buffer& chunk = chunks_[at_.chunk];
    if (at_.offset + bytes > chunk.bytes()) continue;
    char* piece = static_cast<char*>(chunk.data()) + at_.offset;
    at_.offset += bytes;
    return piece;
  }
}

void Arena::release() {
  chunks_.clear();
  at_ = {};
}

int64_t Arena::bytes() const {
  int64_t total = 0;
  for (const Buffer& chunk : chunks_) total += chunk.bytes();
  return total;
}

}  // namespace collimate::tensor

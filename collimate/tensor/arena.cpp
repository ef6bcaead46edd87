#include "collimate/tensor/arena.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kFirstChunkBytes = 1 << 18;
constexpr int64_t kLargestStepBytes = int64_t{64} << 20;

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void Arena::reserve(int64_t floats) {
  const int64_t wanted = floats * static_cast<int64_t>(sizeof(float));
  COLLIMATE_CHECK(at_.device.chunk == 0 && at_.device.offset == 0, "reserving an arena in use");
  if (wanted == 0 || (!chunks_.empty() && chunks_.front().bytes() >= wanted)) return;
  for (Buffer& chunk : chunks_) chunk.discard();
  chunks_.clear();
  // The chunk has all bytes of the block that is counted anyway, so that a slightly larger step does not touch new
  // pages.
  chunks_.emplace_back(allocated_bytes(wanted) - allocated_bytes(0), *device_);
}

float* Arena::take(int64_t floats) {
  const int64_t bytes = aligned(floats * static_cast<int64_t>(sizeof(float)));
  for (Place& at = at_.device;; ++at.chunk, at.offset = 0) {
    if (at.chunk == chunks_.size()) {
      const int64_t grown =
          chunks_.empty() ? kFirstChunkBytes : std::min(2 * chunks_.back().bytes(), kLargestStepBytes);
      chunks_.emplace_back(std::max(bytes, grown), *device_);
    }
    const Buffer& chunk = chunks_[at.chunk];
    if (at.offset + bytes > chunk.bytes()) continue;
    char* piece = static_cast<char*>(chunk.data()) + at.offset;
    at.offset += bytes;
    peak_bytes_ = std::max(peak_bytes_, at.offset);
    return reinterpret_cast<float*>(piece);
  }
}

void* Arena::take_host(int64_t bytes) {
  Place& at = at_.host;
  COLLIMATE_CHECK(bytes <= kHostChunkBytes, "{} bytes", bytes);
  if (at.chunk < host_chunks_.size() && at.offset + bytes > kHostChunkBytes) at = {at.chunk + 1, 0};
  if (at.chunk == host_chunks_.size()) host_chunks_.push_back(std::make_unique<HostChunk>());
  std::byte* piece = host_chunks_[at.chunk]->bytes + at.offset;
  at.offset += aligned(bytes);
  return piece;
}

void Arena::release() {
  for (Buffer& chunk : chunks_) chunk.discard();
  chunks_.clear();
  host_chunks_.clear();
  reset();
}

int64_t Arena::bytes() const {
  int64_t total = 0;
  for (const Buffer& chunk : chunks_) total += chunk.bytes();
  return total;
}

}  // namespace collimate::tensor

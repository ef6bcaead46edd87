#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/tensor/allocator.h"

namespace collimate::tensor {

// Memory of a device that is taken piece by piece and released all at once, and beside it a little of the host's for
// what describes the pieces. Pieces never move; chunks stay with the arena between steps, so that a steady step
// allocates nothing. Not thread-safe.
class Arena {
 public:
  struct Place {
    size_t chunk = 0;
    int64_t offset = 0;  // bytes
  };
  struct Mark {
    Place device, host;
  };

  explicit Arena(const Device& device = cpu_device()) : device_(&device) {}

  // Room for so many floats in one chunk, where they do not fit already; nothing may be taken. Without it chunks
  // double.
  void reserve(int64_t floats);
  // 64-byte aligned, undefined contents.
  float* take(int64_t floats);
  // Takes memory of the host, at most kHostChunkBytes.
  void* take_host(int64_t bytes);

  Mark mark() const { return at_; }
  // Releases everything taken since the mark.
  void rewind(Mark mark) { at_ = mark; }
  void reset() { at_ = {}; }
  // Gives the chunks back, which are not kept for reuse.
  void release();
  int64_t bytes() const;  // of the device
  // The most floats that were taken at once, of an arena whose first chunk has held them all.
  int64_t peak_floats() const { return peak_bytes_ / static_cast<int64_t>(sizeof(float)); }

  static constexpr int64_t kHostChunkBytes = 1 << 13;

 private:
  struct alignas(64) HostChunk {
    std::byte bytes[kHostChunkBytes];
  };
  const Device* device_;
  std::vector<Buffer> chunks_;
  std::vector<std::unique_ptr<HostChunk>> host_chunks_;
  Mark at_;
  int64_t peak_bytes_ = 0;
};

}  // namespace collimate::tensor

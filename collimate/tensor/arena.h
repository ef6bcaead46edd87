#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/tensor/allocator.h"

namespace collimate::tensor {

// An Arena gives out memory of a device piece by piece and takes it back all at once. Beside it, it gives out a little
// of the host's memory, for the objects that describe the pieces. Pieces never move. Chunks stay with the arena between
// steps, so that a step like the last one allocates nothing. Not thread-safe.
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

  // Makes room for `floats` floats in one chunk, unless the first chunk has it already. No piece of the device's memory
  // may be taken at that time. Without this call each new chunk is twice as large as the last, up to 64 MiB.
  void reserve(int64_t floats);
  // Returns memory of the device that is aligned to 64 bytes and has undefined contents.
  float* take(int64_t floats);
  // Returns memory of the host, at most kHostChunkBytes.
  void* take_host(int64_t bytes);

  Mark mark() const { return at_; }
  // Releases everything taken since the mark.
  void rewind(Mark mark) { at_ = mark; }
  void reset() { at_ = {}; }
  // Gives all chunks back, not to be kept for reuse.
  void release();
  int64_t bytes() const;  // of the device's chunks
  // Returns the most floats that were taken at once. Only right for an arena whose first chunk has held them all.
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

#pragma once

#include <cstdint>

namespace collimate::tensor {

// An AlignedBuffer is memory that can grow, aligned to 64 bytes; movable, not copyable. Contents are undefined after
// growth.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  // Returns at least `bytes` bytes: the same memory as before where it is large enough. Throws RunError when there is
  // none.
  void* reserve(int64_t bytes);
  float* floats(int64_t count) { return static_cast<float*>(reserve(count * static_cast<int64_t>(sizeof(float)))); }
  void* data() const { return data_; }
  int64_t capacity() const { return capacity_; }

 private:
  void* data_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace collimate::tensor

#include "collimate/tensor/kernels/aligned_buffer.h"

#include <utility>

#include "collimate/tensor/allocator.h"

namespace collimate::tensor {

AlignedBuffer::~AlignedBuffer() { deallocate(data_); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void* AlignedBuffer::reserve(int64_t bytes) {
  if (bytes <= capacity_) return data_;
  discard(std::exchange(data_, nullptr));
  capacity_ = 0;
  const MemoryScope tagged("scratch");
  data_ = allocate(bytes);
  capacity_ = bytes;
  return data_;
}

}  // namespace collimate::tensor

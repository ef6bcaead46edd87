#include "collimate/tensor/kernels/aligned_buffer.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::tensor {

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

void* AlignedBuffer::reserve(int64_t bytes) {
  if (bytes <= capacity_) return data_;
  std::free(data_);
  capacity_ = 0;
  const int64_t rounded = (bytes + 63) / 64 * 64;
  data_ = std::aligned_alloc(64, static_cast<size_t>(rounded));
  if (data_ == nullptr) {
    throw base::RunError(base::expectation("memory", std::to_string(rounded) + " bytes for a kernel", "none",
                                           "use a smaller batch or model"));
  }
  capacity_ = rounded;
  return data_;
}

}  // namespace collimate::tensor

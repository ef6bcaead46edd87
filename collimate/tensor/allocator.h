#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collimate::tensor {

// What one purpose of one worker holds. Bytes are what the system was asked for, headers and rounding included.
struct MemoryUse {
  int worker = 0;
  std::string purpose;
  int64_t bytes = 0;
  int64_t peak_bytes = 0;
};

// Every block of the calling thread is tagged with (worker, purpose) while this lives. Scopes nest.
class MemoryScope {
 public:
  MemoryScope(int worker, const std::string& purpose);
  // Another purpose of the worker in force.
  explicit MemoryScope(const std::string& purpose);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  int previous_;
};

// Worker of the scope in force; 0 outside any.
int memory_worker();

// 64-byte aligned, undefined contents. Freed blocks are kept for the next step of any worker (large ones up to a
// quarter of what is in use). Thread-safe. RunError naming purpose and budget when the worker's budget would be
// exceeded (nothing is allocated then).
void* allocate(int64_t bytes);
void deallocate(void* block) noexcept;
// Gives a block, for instance a received message's, to another worker; its purpose stays.
void retag(void* block, int worker);

// Limit on a worker's blocks; 0: none.
void set_memory_budget(int worker, int64_t bytes);
int64_t memory_used(int worker);
// One entry per (worker, purpose) that ever held something, largest first.
std::vector<MemoryUse> memory_report();
void reset_memory_peaks();
// Bytes of freed blocks kept for reuse, and giving them back to the system (explicit decommit).
int64_t memory_cached();
void trim_memory();

// Lets ATen's CPU tensors come from this allocator. To be called once by the program before the first tensor.
void install_aten_allocator();

// A block with an owner: movable memory of at least `bytes` bytes.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t bytes) : data_(bytes > 0 ? allocate(bytes) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() { deallocate(data_); }

  float* floats() const { return static_cast<float*>(data_); }
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace collimate::tensor

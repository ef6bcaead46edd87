#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/tensor/device.h"

namespace at {
class Tensor;
}

namespace collimate::tensor {

// One purpose of one worker holds this. Bytes are what the system was asked for, headers and rounding included.
struct MemoryUse {
  int worker = 0;
  std::string purpose;
  int64_t bytes = 0;
  int64_t peak_bytes = 0;
};

// One line of what something holds, or will hold: what for, and how many bytes.
struct MemoryItem {
  std::string purpose;
  int64_t bytes = 0;
};

// Every block of the calling thread is tagged with (worker, purpose) while this lives. Scopes nest.
class MemoryScope : private base::Immovable {
 public:
  MemoryScope(int worker, const std::string& purpose);
  // Another purpose of the worker in force.
  explicit MemoryScope(const std::string& purpose);
  ~MemoryScope();

 private:
  int previous_;
};

// Worker of the scope in force; 0 outside any.
int memory_worker();
// Sets the tags of this thread's blocks outside scopes from now on: for threads that live as long as their worker.
void tag_thread_memory(int worker, const std::string& purpose);

// 64-byte aligned, undefined contents. Freed blocks are kept for the next step of any worker (large ones up to a
// quarter of what is in use). Thread-safe. RunError naming purpose and budget when the worker's budget would be
// exceeded (nothing is allocated then).
void* allocate(int64_t bytes);
void deallocate(void* block) noexcept;
// Frees without keeping the block: for sizes that do not come again.
void discard(void* block) noexcept;
// Gives what a block of so many bytes is counted as: header and rounding to one of eight sizes per doubling.
int64_t allocated_bytes(int64_t bytes);
// Gives a block, for instance a received message's, to another worker; its purpose stays. With `holder`, only if it is
// that worker's. Thread-safe. RunError as of allocate() when the worker's budget would be exceeded: then it stays.
void retag(void* block, int worker, std::optional<int> holder = std::nullopt);
// Retags the block that a tensor lies in; memory that is not of this allocator stays as it is.
void retag(const at::Tensor& tensor, int worker, std::optional<int> holder = std::nullopt);

// Counts a block of so many bytes that lies elsewhere, as on a device, with the tag in force, which it returns;
// and takes it off again. RunError as of allocate().
int count_block(int64_t bytes);
void uncount_block(int tag, int64_t bytes) noexcept;

// Limit on a worker's blocks; 0: none.
void set_memory_budget(int worker, int64_t bytes);
int64_t memory_used(int worker);
// The most that a worker held at once, all purposes together, since the last reset of that number.
int64_t memory_peak(int worker);
void reset_memory_peak(int worker);
// One entry per (worker, purpose) that ever held something, largest first.
std::vector<MemoryUse> memory_report();
// Starts a worker's peaks, of every purpose and of their sum, at what it holds now.
void reset_memory_peaks(int worker);
// Bytes of freed blocks kept for reuse, and giving them back to the system (explicit decommit).
int64_t memory_cached();
void trim_memory();

// Lets ATen's CPU tensors come from this allocator. To be called once by the program before the first tensor.
void install_aten_allocator();

// A block with an owner: movable memory of at least `bytes` bytes, the host's own or a device's.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t bytes, const Device& device = cpu_device())
      : device_(&device), data_(bytes > 0 ? device.take(bytes) : nullptr), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) device_->give_back(data_, /*keep=*/true);
  }
  // Empty from now on; the memory is not kept for reuse.
  void discard() {
    if (data_ != nullptr) device_->give_back(std::exchange(data_, nullptr), /*keep=*/false);
    bytes_ = 0;
  }

  float* floats() const { return static_cast<float*>(data_); }
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  const Device* device_ = &cpu_device();
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace collimate::tensor

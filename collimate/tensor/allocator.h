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

// A MemoryUse says how much one purpose of one worker holds. Bytes count what the system was asked for, headers and
// rounding included.
struct MemoryUse {
  int worker = 0;
  std::string purpose;
  int64_t bytes = 0;
  int64_t peak_bytes = 0;
};

// A MemoryItem is one line of a list of what something holds or will hold: for which purpose, and how many bytes.
struct MemoryItem {
  std::string purpose;
  int64_t bytes = 0;
};

// Tags every block that the calling thread allocates with (worker, purpose) while this lives. Scopes nest.
class MemoryScope : private base::Immovable {
 public:
  MemoryScope(int worker, const std::string& purpose);
  // Keeps the worker of the scope in force, and changes the purpose.
  explicit MemoryScope(const std::string& purpose);
  ~MemoryScope();

 private:
  int previous_;
};

// Returns the worker of the scope in force, or of tag_thread_memory() outside any scope; 0 where neither has set one.
int memory_worker();
// Sets the tag of blocks that this thread allocates outside scopes from now on. It is meant for threads that live as
// long as their worker.
void tag_thread_memory(int worker, const std::string& purpose);

// Returns a block that is aligned to 64 bytes and has undefined contents. Freed blocks are kept for the next step of
// any worker, those of 1 MiB or more only up to 64 MiB or a quarter of what is in use, whichever is more. Thread-safe.
// Throws RunError, which names purpose and budget, and allocates nothing when the worker's budget would be exceeded.
void* allocate(int64_t bytes);
void deallocate(void* block) noexcept;
// Gives a block back to the system at once. It is meant for sizes that do not come again.
void discard(void* block) noexcept;
// Returns the bytes that a block of `bytes` bytes is counted as: with its header, and rounded up to one of eight sizes
// per doubling.
int64_t allocated_bytes(int64_t bytes);
// Moves the count of a block, for instance of a received message, to another worker; its purpose stays. With `holder`,
// only a block of that worker is moved. Thread-safe. Throws RunError as allocate() does, and leaves the block where it
// was, when the new worker's budget would be exceeded.
void retag(void* block, int worker, std::optional<int> holder = std::nullopt);
// Retags the block that a tensor lies in; a tensor whose memory is not from this allocator stays as it is.
void retag(const at::Tensor& tensor, int worker, std::optional<int> holder = std::nullopt);

// count_block() counts a block of `bytes` bytes that lies elsewhere, as on a device, under the tag in force, and
// returns that tag; it throws RunError as allocate() does. uncount_block() takes the block off that tag again.
int count_block(int64_t bytes);
void uncount_block(int tag, int64_t bytes) noexcept;

// Limits the sum of a worker's blocks; 0 sets no limit.
void set_memory_budget(int worker, int64_t bytes);
int64_t memory_used(int worker);
// Returns the most bytes that a worker held at once, of all purposes together, since this number was last reset.
int64_t memory_peak(int worker);
void reset_memory_peak(int worker);
// Returns one entry for each (worker, purpose) that has held something since its peak was last reset, largest first.
std::vector<MemoryUse> memory_report();
// Sets a worker's peaks, of each purpose and of all together, to what it holds now.
void reset_memory_peaks(int worker);
// memory_cached() returns the bytes of freed blocks that are kept for reuse; trim_memory() gives them back to the
// system.
int64_t memory_cached();
void trim_memory();

// Has ATen's CPU tensors come from this allocator. A program calls it once, before its first tensor.
void install_aten_allocator();

// A Buffer owns one block of at least `bytes` bytes, of the host's memory or of a device's. Movable.
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
  // Gives the memory back, not to be kept for reuse. The buffer is empty from then on.
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

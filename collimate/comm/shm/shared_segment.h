#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "collimate/base/deadline.h"
#include "collimate/base/immovable.h"
#include "collimate/comm/group.h"

// This file has the memory that the ranks of one group share. All of it begins as zeros, which is a valid state, so
// nobody has to initialise it before the others; a process may be killed at any moment.
namespace collimate::comm::shm {

inline constexpr int kMostRanks = 64;
inline constexpr size_t kBufferBytes = size_t{1} << 18;  // of one rank in one exchange
inline constexpr size_t kMailBytes = size_t{1} << 14;    // of one send
inline constexpr size_t kCauseBytes = size_t{1} << 14;

struct alignas(64) RankState {
  std::atomic<uint64_t> arrived;   // meetings that the rank has come to
  std::atomic<uint64_t> bytes[2];  // by turn: size of its side of the collective that uses this turn's buffers
  std::atomic<int32_t> process;    // the process's id; 0 until it has joined
};

// A Mail is a send that waits for its receive.
struct alignas(64) Mail {
  std::atomic<uint32_t> full;
  std::atomic<uint64_t> bytes;  // of the whole message, of which this is a part
};

enum Aborted : uint32_t { kNot, kBeing, kAborted };

struct Control {
  std::atomic<uint32_t> changes;   // counts all changes that a rank may wait for
  std::atomic<uint32_t> sleepers;  // ranks that sleep until it changes; one that is killed meanwhile stays counted
  std::atomic<uint32_t> joined;
  std::atomic<uint32_t> aborted;  // an Aborted
  base::Heartbeat heartbeat;      // of all ranks together
  char cause[kCauseBytes];        // ends with a 0; read once `aborted` is kAborted
  RankState ranks[kMostRanks];
  Mail mail[kMostRanks * kMostRanks];  // [from · size + to]
};

// A SharedSegment is one rank's mapping of its group's memory. The descriptor is closed once it is mapped.
class SharedSegment : private base::Immovable {
 public:
  // Finds the group's part of the store by its name. Throws InputError when the store cannot be opened, RunError when
  // it is full or more than `size` ranks join under the name.
  explicit SharedSegment(const GroupPlace& place);
  ~SharedSegment();

  Control& control() const { return *reinterpret_cast<Control*>(memory_); }
  // These return buffers of kBufferBytes: two of each rank, which exchanges use in turn, and the one that receives
  // sums.
  std::byte* buffer(size_t turn, int rank) const { return buffers_ + (turn * ranks_ + rank_of(rank)) * kBufferBytes; }
  std::byte* sums() const { return buffers_ + 2 * ranks_ * kBufferBytes; }
  std::byte* mail(int from, int to) const {
    return sums() + kBufferBytes + (rank_of(from) * ranks_ + rank_of(to)) * kMailBytes;
  }

  // Notes a change that others may wait for, and wakes them.
  void notify() const;
  // Sleeps while `changes` is still `seen`, for at most `longest`.
  void sleep(uint32_t seen, std::chrono::steady_clock::duration longest) const;

 private:
  static size_t rank_of(int rank) { return static_cast<size_t>(rank); }

  const size_t ranks_;
  size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::byte* buffers_ = nullptr;
};

// Opens memory without a name, which the groups of a run find by this process's id and descriptor. It disappears with
// the last process that has it, however that ends.
std::unique_ptr<GroupStore> open_store();

}  // namespace collimate::comm::shm

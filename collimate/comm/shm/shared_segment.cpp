#include "collimate/comm/shm/shared_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"

namespace collimate::comm::shm {
namespace {

constexpr size_t kMostGroups = 64;               // of one store
constexpr size_t kPage = 4096;                   // size of the directory; mappings are aligned to it
constexpr size_t kGroupBytes = size_t{1} << 28;  // between groups; only what is touched takes memory

using Directory = std::atomic<uint64_t>[kMostGroups];  // a hash of the name of each group, 0 where there is none
static_assert(sizeof(Directory) <= kPage);

constexpr size_t control_bytes() { return (sizeof(Control) + kPage - 1) / kPage * kPage; }
constexpr size_t segment_bytes(size_t ranks) {
  return control_bytes() + (2 * ranks + 1) * kBufferBytes + ranks * ranks * kMailBytes;
}
static_assert(segment_bytes(kMostRanks) <= kGroupBytes);

std::byte* map(int file, size_t offset, size_t bytes, const std::string& path) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) host::throw_io_error(path, "to map", errno);
  return static_cast<std::byte*>(memory);
}

// Returns the entry of a name. A name without one takes the first free entry; ranks that do so at the same time take
// the same one.
size_t entry_of(Directory& directory, const std::string& name) {
  const uint64_t mine = std::hash<std::string>()(name) | 1;
  for (size_t i = 0; i < kMostGroups; ++i) {
    uint64_t known = 0;
    if (directory[i].compare_exchange_strong(known, mine) || known == mine) return i;
  }
  throw base::RunError(
      base::expectation("group " + name, fmt::format("at most {} groups in a run", kMostGroups), "one more"));
}

size_t find_group(int file, const GroupPlace& place) {
  std::byte* page = map(file, 0, kPage, place.store);
  try {
    const size_t entry = entry_of(*reinterpret_cast<Directory*>(page), place.name);
    ::munmap(page, kPage);
    return kPage + entry * kGroupBytes;
  } catch (...) {
    ::munmap(page, kPage);
    throw;
  }
}

class MemoryStore final : public GroupStore {
 public:
  MemoryStore() : file_(::memfd_create("collimate-groups", MFD_CLOEXEC)) {
    if (!file_.valid() || ::ftruncate(file_.get(), kPage + kMostGroups * kGroupBytes) != 0)
      host::throw_io_error("shared memory of groups", "to be made", errno);
  }
  std::string address() const override { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()); }

 private:
  host::FileDescriptor file_;
};

}  // namespace

SharedSegment::SharedSegment(const GroupPlace& place) : ranks_(rank_of(place.size)) {
  if (place.size > kMostRanks)
    throw base::InputError(base::expectation("group " + place.name,
                                             fmt::format("at most {} processes of one machine", kMostRanks),
                                             std::to_string(place.size)));
  const host::FileDescriptor file(::open(place.store.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid())
    throw base::InputError(base::expectation("group " + place.name, "the memory at " + place.store,
                                             std::strerror(errno), "workers of one user on one machine"));
  bytes_ = segment_bytes(ranks_);
  memory_ = map(file.get(), find_group(file.get(), place), bytes_, place.store);
  buffers_ = memory_ + control_bytes();
  if (control().joined.fetch_add(1) < static_cast<uint32_t>(place.size)) return;
  ::munmap(memory_, bytes_);
  throw base::RunError(base::expectation("group " + place.name, fmt::format("{} ranks", place.size), "one more"));
}

SharedSegment::~SharedSegment() { ::munmap(memory_, bytes_); }

void SharedSegment::notify() const {
  control().changes.fetch_add(1);
  if (control().sleepers.load() > 0) ::syscall(SYS_futex, &control().changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedSegment::sleep(uint32_t seen, std::chrono::steady_clock::duration longest) const {
  const auto nanoseconds = std::chrono::nanoseconds(longest).count();
  if (nanoseconds <= 0) return;
  const timespec limit{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  control().sleepers.fetch_add(1);
  ::syscall(SYS_futex, &control().changes, FUTEX_WAIT, seen, &limit, nullptr, 0);
  control().sleepers.fetch_sub(1);
}

std::unique_ptr<GroupStore> open_store() { return std::make_unique<MemoryStore>(); }

}  // namespace collimate::comm::shm

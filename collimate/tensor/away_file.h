#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// An AwayFile holds the bytes of buffers while they are off their device. It is a file without a name in a directory on
// a disk, and is gone when the process ends. The system writes to the disk in the background: put() waits only for the
// copy into the system's cache. Throws RunError, which names the directory, for errors of the disk. A checksum proves
// that bytes come back as they were put, because the system reports to nobody that a background write has failed. Used
// by one thread.
class AwayFile : private base::Immovable {
 public:
  // A Slot is the place of one buffer's bytes in this file. Bytes that were put there stay there, and may be read
  // again.
  struct Slot {
    int64_t offset = -1;  // -1: no place is reserved yet
    int64_t bytes = 0;
    uint32_t crc32c = 0;   // of the bytes in the file
    bool current = false;  // the file has the bytes that the buffer had when it left, or has since it came back
    bool away = false;     // the buffer is empty, and its bytes are here
  };

  // Throws RunError where no file can be made in the directory, and warns of a directory in memory (tmpfs). `progress`,
  // if given, is called after each piece of at most 16 MiB that is written or read.
  explicit AwayFile(std::filesystem::path directory, std::function<void()> progress = nullptr);

  // Writes the buffer's bytes to the file and gives its memory back, not to be kept for reuse. The first call for a
  // slot reserves space on the disk for them, so that none is missing later; it throws RunError when there is none, and
  // leaves the buffer as it is. Nothing is written where `slot.current` is set.
  void put(const Exec& exec, Slot& slot, Buffer& buffer);
  // Gives the buffer memory again, under the tag in force, and reads its bytes back. Throws RunError where the disk
  // returns other bytes. `slot.current` stays set: whoever changes the buffer afterwards clears it.
  void bring(const Exec& exec, Slot& slot, Buffer& buffer);
  // Has the system begin to read bytes that bring() will soon need and that are only on the disk. Waits for nothing.
  void expect(const Slot& slot) const;

 private:
  void reserve(Slot& slot, int64_t bytes);
  void write(Slot& slot, std::span<const std::byte> bytes);
  void read(const Slot& slot, std::span<std::byte> bytes);
  void piece_done() const {
    if (progress_) progress_();
  }

  std::filesystem::path directory_;
  std::function<void()> progress_;
  host::FileDescriptor fd_;
  int64_t size_bytes_ = 0;
};

}  // namespace collimate::tensor

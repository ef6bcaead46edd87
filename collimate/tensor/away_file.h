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

// Where buffers are while they are off their device: a file without a name, in a directory of a disk, that is gone with
// the process. The system writes behind: what is put here waits for a copy into its cache alone. Errors of the disk are
// RunErrors that name the directory; that bytes come back as they were put is checked by a checksum, as the system
// tells nobody of a page that it could not write behind. Used by one thread.
class AwayFile : private base::Immovable {
 public:
  // The bytes of one buffer in this file. What it was put with stays there, to be read again.
  struct Slot {
    int64_t offset = -1;  // none yet
    int64_t bytes = 0;
    uint32_t crc32c = 0;   // of the bytes in the file
    bool current = false;  // the file has what the buffer had when it left
    bool away = false;     // the buffer is empty, and its bytes are here
  };

  // RunError where no file can be made there. A directory in memory (tmpfs) is warned of. `progress`, if any, is called
  // after each piece of a few MiB that is written or read.
  explicit AwayFile(std::filesystem::path directory, std::function<void()> progress = nullptr);

  // Takes the buffer's bytes and gives its memory back, which is not kept for reuse. The first time it takes room of
  // the disk for them, so that none is missing later: RunError when there is none, and the buffer stays as it is. With
  // `slot.current` nothing is written.
  void put(const Exec& exec, Slot& slot, Buffer& buffer);
  // Gives the buffer memory, with the tag in force, and its bytes; RunError where the disk has others now.
  // `slot.current` from then on: whoever changes the buffer clears it.
  void bring(const Exec& exec, Slot& slot, Buffer& buffer);
  // Has the system begin to read what is soon brought, where the disk alone still has it. Waits for nothing.
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

#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Where buffers are while they are off their device: a file without a name, in a directory of a disk, that is gone with
// the process. The system writes behind: what is put here waits for a copy into its cache alone. Errors of the disk are
// RunErrors that name the directory. Used by one thread.
class AwayFile : private base::Immovable {
 public:
  // The bytes of one buffer in this file. What it was put with stays there, to be read again.
  struct Slot {
    int64_t offset = -1;  // none yet
    int64_t bytes = 0;
    bool current = false;  // the file has what the buffer had when it left
    bool away = false;     // the buffer is empty, and its bytes are here
  };

  // RunError where no file can be made there. A directory in memory (tmpfs) is warned of.
  explicit AwayFile(std::filesystem::path directory);

  // Takes the buffer's bytes and gives its memory back, which is not kept for reuse. The first time it takes room of
  // the disk for them, so that none is missing later: RunError when there is none, and the buffer stays as it is. With
  // `slot.current` nothing is written.
  void put(const Exec& exec, Slot& slot, Buffer& buffer);
  // Gives the buffer memory, with the tag in force, and its bytes. `slot.current` from then on: whoever changes the
  // buffer clears it.
  void bring(const Exec& exec, Slot& slot, Buffer& buffer);

 private:
  void reserve(Slot& slot, int64_t bytes);

  std::filesystem::path directory_;
  host::FileDescriptor fd_;
  int64_t size_bytes_ = 0;
};

}  // namespace collimate::tensor

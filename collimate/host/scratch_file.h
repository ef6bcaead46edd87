#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"

namespace collimate::host {

// A ScratchFile is a file among the system's temporary ones (TMPDIR) that grows at its end. No directory lists it, so
// that nothing is left of it when the process has ended in any way.
class ScratchFile : private base::Immovable {
 public:
  // Makes an empty file, which messages call "collimate-PURPOSE-…". Throws RunError, and InputError where TMPDIR names
  // no directory.
  explicit ScratchFile(const std::string& purpose);

  // Writes bytes behind those that are there and returns where they begin. Throws RunError, which names TMPDIR.
  int64_t append(std::span<const std::byte> data);
  // Fills `data` with the bytes from an offset on. Throws RunError where there are fewer. Several threads may read.
  void read(int64_t offset, std::span<std::byte> data) const;
  int64_t size() const { return size_; }

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  int64_t size_ = 0;
};

}  // namespace collimate::host

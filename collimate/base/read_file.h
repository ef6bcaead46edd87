#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace collimate::base {

// A FileDescriptor owns a file descriptor; -1 is none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Opens a regular file without ever blocking and stores its size in `size` when that is given. Throws InputError when
// the path is no regular file or cannot be opened.
FileDescriptor open_for_reading(const std::filesystem::path& path, int64_t* size = nullptr);
// Returns the whole of a regular file. Throws InputError when it cannot be opened, RunError when reading fails.
std::string read_file(const std::filesystem::path& path);

}  // namespace collimate::base

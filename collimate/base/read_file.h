#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace collimate::base {

// An owned file descriptor; -1 is none.
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

// Opens a regular file and gives its size where asked. InputError for what is none or cannot be opened; never blocks.
FileDescriptor open_for_reading(const std::filesystem::path& path, int64_t* size = nullptr);
// The whole of a regular file. Throws InputError when it cannot be opened, RunError when reading fails.
std::string read_file(const std::filesystem::path& path);

}  // namespace collimate::base

#include "collimate/base/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collimate/base/error.h"

namespace collimate::base {

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

FileDescriptor open_for_reading(const std::filesystem::path& path, int64_t* size) {
  // A FIFO without a writer would block an open that waits.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    throw InputError(expectation(path.string(), "a readable file", std::strerror(errno)));
  if (!S_ISREG(info.st_mode))
    throw InputError(
        expectation(path.string(), "a regular file", S_ISDIR(info.st_mode) ? "a directory" : "a pipe or device"));
  if (size != nullptr) *size = info.st_size;
  return fd;
}

std::string read_file(const std::filesystem::path& path) {
  int64_t expected = 0;
  const FileDescriptor fd = open_for_reading(path, &expected);
  std::string text(static_cast<size_t>(expected), '\0');
  size_t size = 0;
  for (;;) {
    if (size == text.size()) text.resize(size + 4096);  // /proc or a file that grew
    const ssize_t count = ::read(fd.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw RunError(expectation(path.string(), "to read", std::strerror(errno)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace collimate::base

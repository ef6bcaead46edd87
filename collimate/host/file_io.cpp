#include "collimate/host/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"

namespace collimate::host {

void FileDescriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

namespace {

std::string remedy_of(int error_number) {
  if (error_number == ENOSPC) return "freeing space on that disk";
  return error_number == EFBIG ? "a higher limit on the size of files (ulimit -f)" : "";
}

}  // namespace

FileDescriptor open_for_reading(const std::filesystem::path& path, int64_t* size) {
  // A FIFO without a writer would block an open that waits.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    throw base::InputError(base::expectation(path.string(), "a readable file", std::strerror(errno)));
  if (!S_ISREG(info.st_mode))
    throw base::InputError(
        base::expectation(path.string(), "a regular file", S_ISDIR(info.st_mode) ? "a directory" : "a pipe or device"));
  if (size != nullptr) *size = info.st_size;
  return fd;
}

void throw_io_error(const std::filesystem::path& path, const std::string& action, int error_number) {
  throw base::RunError(base::expectation(path.string(), action, std::strerror(error_number), remedy_of(error_number)));
}

void write_fully(int fd, std::span<const std::byte> data, const std::filesystem::path& path) {
  const size_t allowed = base::allowed_disk_bytes(data.size());
  size_t written = 0;
  while (written < allowed) {
    const ssize_t count = ::write(fd, data.data() + written, allowed - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(path, "to write", errno);
    written += static_cast<size_t>(count);
  }
  if (allowed < data.size()) throw_io_error(path, "to write", ENOSPC);
}

void sync_file(int fd, const std::filesystem::path& path) {
  if (::fsync(fd) != 0) throw_io_error(path, "to reach the disk", errno);
}

void sync_path(const std::filesystem::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_io_error(path, "to open for syncing", errno);
  sync_file(fd.get(), path);
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
    if (count < 0) throw_io_error(path, "to read", errno);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace collimate::host

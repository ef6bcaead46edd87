#include "collimate/host/file_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"

namespace collimate::host {

namespace {

std::string remedy_of(int error_number) {
  if (error_number == ENOSPC) return "freeing space on that disk";
  if (error_number == EACCES || error_number == EPERM) return "a user who may read and write there, or another place";
  if (error_number == EROFS) return "another place, as that disk can not be written to";
  return error_number == EFBIG ? "a higher limit on the size of files (ulimit -f)" : "";
}

}  // namespace

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

void write_at(int fd, int64_t offset, std::span<const std::byte> data, const std::filesystem::path& path) {
  while (!data.empty()) {
    const ssize_t count = ::pwrite(fd, data.data(), data.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(path, "to write", errno);
    data = data.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void read_at(int fd, int64_t offset, std::span<std::byte> data, const std::filesystem::path& path) {
  while (!data.empty()) {
    const ssize_t count = ::pread(fd, data.data(), data.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(path, "to read", errno);
    if (count == 0) throw base::RunError(base::expectation(path.string(), "bytes to read", "the end of the file"));
    data = data.subspan(static_cast<size_t>(count));
    offset += count;
  }
}

void sync_file(int fd, const std::filesystem::path& path) {
  if (::fsync(fd) != 0) throw_io_error(path, "to reach the disk", errno);
}

void sync_path(const std::filesystem::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) throw_io_error(path, "to open for syncing", errno);
  sync_file(fd.get(), path);
}

}  // namespace collimate::host

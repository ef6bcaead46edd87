#include "collimate/tensor/away_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/tensor/host_access.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;  // written at once, and handed to the disk
constexpr const char* kAway = "room for what leaves the device";

host::FileDescriptor unnamed_file(const std::filesystem::path& directory) {
  std::string name = (directory / ".away-XXXXXX").string();
  host::FileDescriptor fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) host::throw_io_error(directory, std::string("a file with ") + kAway, errno);
  ::unlink(name.c_str());
  return fd;
}

bool is_in_memory(int fd) {
  struct statfs about = {};
  return ::fstatfs(fd, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

int64_t floats_of(const Buffer& buffer) { return buffer.bytes() / static_cast<int64_t>(sizeof(float)); }

}  // namespace

AwayFile::AwayFile(std::filesystem::path directory) : directory_(std::move(directory)), fd_(unnamed_file(directory_)) {
  if (is_in_memory(fd_.get()))
    base::log_warning(
        "[{}] expected a disk for what leaves the device, got a file system in memory (tmpfs): it takes "
        "as much of the machine's memory; try run.swap_directory on a disk",
        directory_.string());
}

// Room is taken of the disk itself, so that a full one is found here and not in the middle of a run.
void AwayFile::reserve(Slot& slot, int64_t bytes) {
  const auto wanted = static_cast<size_t>(bytes);
  const int error =
      base::allowed_disk_bytes(wanted) < wanted ? ENOSPC : ::posix_fallocate(fd_.get(), size_bytes_, bytes);
  if (error != 0)
    throw base::RunError(
        base::expectation(directory_.string(), fmt::format("{}: {} more bytes beside {}", kAway, bytes, size_bytes_),
                          std::strerror(error), "freeing space on that disk, or run.swap_directory on another one"));
  slot = {.offset = size_bytes_, .bytes = bytes};
  size_bytes_ += bytes;
}

void AwayFile::put(const Exec& exec, Slot& slot, Buffer& buffer) {
  if (buffer.bytes() == 0) return;
  if (slot.offset < 0) reserve(slot, buffer.bytes());
  COLLIMATE_CHECK(slot.bytes == buffer.bytes() && !slot.away, "{} bytes in a slot of {}", buffer.bytes(), slot.bytes);
  if (!slot.current) {
    const HostRead values(exec, buffer.floats(), floats_of(buffer));
    const auto bytes = std::as_bytes(values.span());
    for (int64_t at = 0; at < slot.bytes; at += kPieceBytes) {
      const int64_t count = std::min(kPieceBytes, slot.bytes - at);
      host::write_at(fd_.get(), slot.offset + at, bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(count)),
                     directory_);
      ::sync_file_range(fd_.get(), slot.offset + at, count,
                        SYNC_FILE_RANGE_WRITE);  // begins; its end is not waited for
    }
  }
  buffer.discard();
  slot.current = slot.away = true;
}

void AwayFile::bring(const Exec& exec, Slot& slot, Buffer& buffer) {
  if (!slot.away) return;
  Buffer back(slot.bytes, *exec.device);
  {
    const HostEdit values(exec, back.floats(), floats_of(back));
    host::read_at(fd_.get(), slot.offset, std::as_writable_bytes(values.span()), directory_);
  }
  buffer = std::move(back);
  slot.away = false;
}

}  // namespace collimate::tensor

#include "collimate/tensor/away_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/log.h"
#include "collimate/host/checksum.h"
#include "collimate/host/unnamed_file.h"
#include "collimate/tensor/host_access.h"

namespace collimate::tensor {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 20;  // so many bytes are written and handed to the disk at a time
constexpr const char* kAway = "room for what leaves the device";

// Calls posix_fallocate again when a signal has interrupted it. Returns its error number, 0 for success.
int reserve_room(int fd, int64_t offset, int64_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(fd, offset, bytes);
  return error;
}

bool is_in_memory(int fd) {
  struct statfs about = {};
  return ::fstatfs(fd, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

int64_t floats_of(const Buffer& buffer) {
  constexpr int64_t kFloatBytes = sizeof(float);
  COLLIMATE_CHECK(buffer.bytes() % kFloatBytes == 0, "{} bytes are not whole floats", buffer.bytes());
  return buffer.bytes() / kFloatBytes;
}

}  // namespace

AwayFile::AwayFile(std::filesystem::path directory, std::function<void()> progress)
    : directory_(std::move(directory)),
      progress_(std::move(progress)),
      fd_(host::unnamed_file(directory_, std::string("a file with ") + kAway)) {
  if (is_in_memory(fd_.get()))
    base::log_warning(
        "[{}] expected a disk for what leaves the device, got a file system in memory (tmpfs): it takes "
        "as much of the machine's memory; try run.swap_directory on a disk",
        directory_.string());
}

// Reserves the space on the disk itself, so that a full disk is found here and not in the middle of a run.
void AwayFile::reserve(Slot& slot, int64_t bytes) {
  const auto wanted = static_cast<size_t>(bytes);
  const int error = base::allowed_disk_bytes(wanted) < wanted ? ENOSPC : reserve_room(fd_.get(), size_bytes_, bytes);
  const bool full = error == ENOSPC || error == EDQUOT;
  if (error != 0)
    throw base::RunError(base::expectation(
        directory_.string(), fmt::format("{}: {} more bytes beside {}", kAway, bytes, size_bytes_),
        std::strerror(error),
        fmt::format("{}run.swap_directory on another disk", full ? "freeing space on that disk, or " : "")));
  slot = {.offset = size_bytes_, .bytes = bytes};
  size_bytes_ += bytes;
}

// Hands each piece to the disk, and does not wait until the disk has written it.
void AwayFile::write(Slot& slot, std::span<const std::byte> bytes) {
  slot.crc32c = 0;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    const int64_t place = slot.offset + static_cast<int64_t>(at);
    slot.crc32c = host::crc32c(piece, slot.crc32c);
    host::write_at(fd_.get(), place, piece, directory_);
    ::sync_file_range(fd_.get(), place, static_cast<int64_t>(piece.size()), SYNC_FILE_RANGE_WRITE);
    piece_done();
  }
}

void AwayFile::read(const Slot& slot, std::span<std::byte> bytes) {
  uint32_t crc = 0;
  for (size_t at = 0; at < bytes.size(); at += kPieceBytes) {
    const auto piece = bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at));
    host::read_at(fd_.get(), slot.offset + static_cast<int64_t>(at), piece, directory_);
    crc = host::crc32c(piece, crc);
    piece_done();
  }
  if (crc == slot.crc32c) return;
  throw base::RunError(base::expectation(
      directory_.string(), fmt::format("the {} bytes that were written there when a model left its device", slot.bytes),
      "others", "run.swap_directory on another disk: this one has lost them"));
}

void AwayFile::put(const Exec& exec, Slot& slot, Buffer& buffer) {
  if (buffer.bytes() == 0) return;
  if (slot.offset < 0) reserve(slot, buffer.bytes());
  COLLIMATE_CHECK(slot.bytes == buffer.bytes() && !slot.away, "{} bytes in a slot of {}", buffer.bytes(), slot.bytes);
  if (!slot.current) {
    const HostRead values(exec, buffer.floats(), floats_of(buffer));
    write(slot, std::as_bytes(values.span()));
  }
  buffer.discard();
  slot.current = slot.away = true;
}

void AwayFile::bring(const Exec& exec, Slot& slot, Buffer& buffer) {
  if (!slot.away) return;
  Buffer back(slot.bytes, *exec.device);
  {
    const HostEdit values(exec, back.floats(), floats_of(back));
    read(slot, std::as_writable_bytes(values.span()));
  }
  buffer = std::move(back);
  slot.away = false;
}

void AwayFile::expect(const Slot& slot) const {
  if (slot.away) ::posix_fadvise(fd_.get(), slot.offset, slot.bytes, POSIX_FADV_WILLNEED);
}

}  // namespace collimate::tensor

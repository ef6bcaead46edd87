#include "collimate/host/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "collimate/host/file_io.h"

namespace collimate::host {

MappedFile::MappedFile(const std::filesystem::path& path) {
  int64_t bytes = 0;
  const FileDescriptor fd = open_for_reading(path, &bytes);
  const auto size = static_cast<size_t>(bytes);
  if (size == 0) return;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) throw_io_error(path, "to map into memory", errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

void forget_pages(std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace collimate::host

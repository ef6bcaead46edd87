#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace collimate::host {

// A MappedFile is a whole file mapped read-only; the bytes live as long as the object. It can be moved. If another
// process truncates the file meanwhile, reading past its new end is fatal, as with any mapping.
class MappedFile {
 public:
  // Throws InputError when the file cannot be opened or is not a regular file. An empty file has an empty span.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

// Drops the pages that lie wholly in a part of a mapped file from this process's memory; they are read again when they
// are used.
void forget_pages(std::span<const std::byte> part);

}  // namespace collimate::host

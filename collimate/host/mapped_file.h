#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace collimate::host {

// A whole file mapped read-only; the bytes live as long as the object. Movable. Reading past a file that another
// process truncates meanwhile is fatal, as with any mapping.
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

// Takes the pages that lie wholly in a part of a mapped file out of this process's memory; read again, they come back.
void forget_pages(std::span<const std::byte> part);

}  // namespace collimate::host

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"

namespace collimate::host {

// An OutputFile is a buffered file that is written front to back. Only one thread may use it. Errors of the disk are
// RunErrors naming the file.
class OutputFile {
 public:
  // Creates or truncates. Throws RunError.
  explicit OutputFile(std::filesystem::path path);
  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  // Flushes, fsyncs and closes. Without this call the written data may be lost.
  void close();
  // Flushes and closes without fsync. This is for a file of an AtomicDirectory, whose commit fsyncs all its files.
  void close_unsynced();
  int64_t size_bytes() const { return size_bytes_; }
  uint32_t crc32c() const { return crc32c_; }  // of all data written so far (host/checksum.h)
  const std::filesystem::path& path() const { return path_; }

 private:
  void flush();

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
  int64_t size_bytes_ = 0;
  uint32_t crc32c_ = 0;
};

// An AtomicFile replaces a file as a whole: it is written beside the file, fsynced and renamed over it, and the
// directory is fsynced. Without `commit`, or when anything fails, the previous file stays as it was and the temporary
// file is removed.
class AtomicFile : private base::Immovable {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();

  void write(std::span<const std::byte> data) { file_.write(data); }
  void write(std::string_view text) { file_.write(text); }
  int64_t size_bytes() const { return file_.size_bytes(); }
  void commit();

 private:
  std::filesystem::path path_;
  OutputFile file_;
  bool committed_ = false;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view text);

// Makes a directory and the missing ones above it, and fsyncs their names to disk. Returns the error that stopped it.
[[nodiscard]] std::error_code make_directories(const std::filesystem::path& path);
void ensure_directory(const std::filesystem::path& path);  // does the same and throws RunError with the reason

// Fsyncs the files of directory `from` and renames it to `to` on the same file system, where an existing directory is
// replaced. Fault points "directory.before_rename" and "directory.after_rename".
void move_directory(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes a directory in such a way that its name never stands for a part of it: it is renamed to "<path>.removed"
// first. After a crash, remove_leftovers() of the parent directory removes what is left. Throws RunError when the
// rename fails.
void remove_directory(const std::filesystem::path& path);
void remove_leftovers(const std::filesystem::path& parent);

// An AtomicDirectory is a directory that is complete or absent: it is filled under `building()` ("<path>.partial"),
// then `commit` fsyncs every file and renames it to its name, where an existing directory is replaced. Without `commit`
// the partial directory is removed. The constructor removes a partial directory that a crash left.
class AtomicDirectory : private base::Immovable {
 public:
  explicit AtomicDirectory(std::filesystem::path path);
  ~AtomicDirectory();

  const std::filesystem::path& building() const { return building_; }
  void commit();  // as move_directory does

 private:
  std::filesystem::path path_;
  std::filesystem::path building_;
  bool committed_ = false;
};

}  // namespace collimate::host

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

// A buffered file that is written front to back. One thread. Errors of the disk are RunErrors naming the file.
class OutputFile {
 public:
  // Creates or truncates. Throws RunError.
  explicit OutputFile(std::filesystem::path path);
  void write(std::span<const std::byte> data);
  void write(std::string_view text);
  // Flushes, fsyncs and closes; without it what was written may be lost.
  void close();
  // Flushes and closes: for a file of an AtomicDirectory, whose commit fsyncs all of them.
  void close_unsynced();
  int64_t size_bytes() const { return size_bytes_; }
  uint32_t crc32c() const { return crc32c_; }  // of what was written so far (host/checksum.h)
  const std::filesystem::path& path() const { return path_; }

 private:
  void flush();

  std::filesystem::path path_;
  FileDescriptor fd_;
  std::vector<std::byte> buffer_;
  int64_t size_bytes_ = 0;
  uint32_t crc32c_ = 0;
};

// Replaces a file as a whole: written beside it, fsynced, renamed over it, its directory fsynced. Without `commit`, or
// when anything fails, the previous file stays as it was and the temporary is removed.
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

// Makes a directory and those above it that are missing; the name of each is on disk afterwards. Says why not.
[[nodiscard]] std::error_code make_directories(const std::filesystem::path& path);
void ensure_directory(const std::filesystem::path& path);  // or a RunError that says why not

// Puts a directory, whose files are fsynced first, in the place of another of the same file system, which may exist.
// Fault points "directory.before_rename" and "directory.after_rename".
void move_directory(const std::filesystem::path& from, const std::filesystem::path& to);

// Removes a directory so that no moment leaves a part of it under its name: renames it to "<path>.removed" first.
// What a crash leaves of that, remove_leftovers() of the directory above removes. RunError.
void remove_directory(const std::filesystem::path& path);
void remove_leftovers(const std::filesystem::path& parent);

// A directory that is complete or absent: filled under `building()` ("<path>.partial"), then every file is fsynced and
// the directory renamed to its name. A directory of that name is replaced. Without `commit` the partial one is removed.
// A partial one left by a crash is removed by the constructor.
class AtomicDirectory : private base::Immovable {
 public:
  explicit AtomicDirectory(std::filesystem::path path);
  ~AtomicDirectory();

  const std::filesystem::path& building() const { return building_; }
  void commit();  // as move_directory

 private:
  std::filesystem::path path_;
  std::filesystem::path building_;
  bool committed_ = false;
};

}  // namespace collimate::host

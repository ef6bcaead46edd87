#include "collimate/host/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/host/checksum.h"
#include "collimate/host/file_status.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;
constexpr size_t kBufferBytes = 1 << 20;

fs::path beside(const fs::path& path) { return path.string() + ".partial"; }

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? "." : parent;
}

// Removes a trailing slash, because "runs/a/" and "runs/a" name the same directory.
fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

void remove_quietly(const fs::path& path) {
  std::error_code ignored;  // a leftover is removed by the next writer
  fs::remove_all(path, ignored);
}

void sync_tree(const fs::path& root) {
  for (const fs::path& path : paths_below(root))
    if (is_file(path) || host::is_directory(path)) sync_path(path);
  sync_path(root);
}

constexpr const char* kRemoved = ".removed";

// Renames a directory to "<path>.removed" and returns that name. An earlier leftover of that name is removed first.
fs::path move_away(const fs::path& path) {
  const fs::path away = without_trailing_slash(path).string() + kRemoved;
  remove_quietly(away);
  if (::rename(path.c_str(), away.c_str()) != 0) throw_io_error(path, "to rename before it is removed", errno);
  sync_path(directory_of(away));  // otherwise after a power cut the old name could hold a part of the directory
  return away;
}

// Renames `from` to `to`, which may exist. Where the file system cannot exchange names, `to` is absent for a moment,
// but its name never stands for a part of a directory.
void replace_directory(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  if (errno != ENOTEMPTY && errno != EEXIST) throw_io_error(to, "to rename a directory to this name", errno);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    sync_path(directory_of(to));
    remove_quietly(from);
    return;
  }
  const fs::path away = move_away(to);
  if (::rename(from.c_str(), to.c_str()) != 0) throw_io_error(to, "to rename a directory to this name", errno);
  base::fault_point("directory.before_remove");
  remove_quietly(away);
}

}  // namespace

OutputFile::OutputFile(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!fd_.valid()) throw_io_error(path_, "to create the file", errno);
}

void OutputFile::write(std::span<const std::byte> data) {
  COLLIMATE_CHECK(fd_.valid(), "write after close");
  size_bytes_ += static_cast<int64_t>(data.size());
  crc32c_ = host::crc32c(data, crc32c_);
  if (buffer_.size() + data.size() > kBufferBytes) flush();
  if (data.size() > kBufferBytes) {
    write_fully(fd_.get(), data, path_);
  } else {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void OutputFile::flush() {
  const std::vector<std::byte> data = std::move(buffer_);
  buffer_.clear();
  write_fully(fd_.get(), data, path_);
}

void OutputFile::close() {
  if (!fd_.valid()) return;
  flush();
  sync_file(fd_.get(), path_);
  close_unsynced();
}

void OutputFile::close_unsynced() {
  flush();
  if (::close(fd_.release()) != 0) throw_io_error(path_, "to close", errno);
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)), file_(beside(path_)) {}

AtomicFile::~AtomicFile() {
  if (!committed_) remove_quietly(beside(path_));
}

void AtomicFile::commit() {
  file_.close();
  base::fault_point("file.before_rename");
  if (::rename(beside(path_).c_str(), path_.c_str()) != 0) throw_io_error(path_, "to rename to this name", errno);
  committed_ = true;
  sync_path(directory_of(path_));
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::error_code make_directories(const fs::path& path) {
  const fs::path directory = without_trailing_slash(path);
  std::error_code error;
  if (directory.empty()) return {};
  if (fs::exists(directory, error))  // checked first, as another process may be making it now
    return fs::is_directory(directory, error) ? std::error_code() : std::make_error_code(std::errc::not_a_directory);
  if ((error = make_directories(directory.parent_path()))) return error;
  fs::create_directory(directory, error);
  if (!error) sync_path(directory_of(directory));
  return error;
}

void ensure_directory(const fs::path& path) {
  if (const std::error_code error = make_directories(path); error)
    throw_io_error(path, "to make the directory", error.value());
}

void move_directory(const fs::path& from, const fs::path& to) {
  sync_tree(from);
  base::fault_point("directory.before_rename");
  replace_directory(from, to);
  base::fault_point("directory.after_rename");
  sync_path(directory_of(to));
}

void remove_directory(const fs::path& path) {
  const fs::path away = move_away(path);
  base::fault_point("directory.before_remove");
  remove_quietly(away);
}

void remove_leftovers(const fs::path& parent) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error))
    if (entry.path().extension() == kRemoved) remove_quietly(entry.path());
}

AtomicDirectory::AtomicDirectory(fs::path path) : path_(without_trailing_slash(path)), building_(beside(path_)) {
  std::error_code error;
  fs::remove_all(building_, error);
  if (!error) fs::create_directories(building_, error);
  if (error) throw_io_error(building_, "to create the directory", error.value());
}

AtomicDirectory::~AtomicDirectory() {
  if (!committed_) remove_quietly(building_);
}

void AtomicDirectory::commit() {
  move_directory(building_, path_);
  committed_ = true;
}

}  // namespace collimate::host

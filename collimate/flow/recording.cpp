#include "collimate/flow/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"

namespace collimate::flow {
namespace {

host::FileDescriptor open_file(const std::string& path, int flags) {
  // A FIFO without a reader would block an open that waits.
  host::FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | flags, 0644));
  if (!fd.valid()) host::throw_io_error(path, "to open", errno);
  return fd;
}

uint32_t checksum_of(const std::string& path, int64_t bytes) {
  const host::MappedFile file(path);
  COLLIMATE_CHECK(static_cast<int64_t>(file.size()) >= bytes, "{} has no {} bytes", path, bytes);
  return host::crc32c(file.bytes().first(static_cast<size_t>(bytes)));
}

// Copies the file to `path`, unless both are in one directory.
void copy_elsewhere(const std::filesystem::path& source, const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::equivalent(path.parent_path(), source.parent_path(), error)) return;
  if (!error) std::filesystem::copy_file(source, path, std::filesystem::copy_options::overwrite_existing, error);
  if (error) host::throw_io_error(path, fmt::format("a copy of {}", source.string()), error.value());
}

}  // namespace

std::string recording_problem(const std::string& path, const Recorded& recorded) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return error.message();
  if (static_cast<int64_t>(size) < recorded.bytes) return fmt::format("{} bytes", size);
  return recorded.crc32c && checksum_of(path, recorded.bytes) != *recorded.crc32c ? "others" : "";
}

Recording::Recording(const std::string& path, const std::string& header) : fd_(open_file(path, O_TRUNC)), path_(path) {
  write(header);
}

Recording::Recording(const std::string& path, const std::string& source, const Recorded& recorded)
    : path_(path),
      bytes_(recorded.bytes),
      crc32c_(recorded.crc32c ? *recorded.crc32c : checksum_of(source, recorded.bytes)) {
  copy_elsewhere(source, path);
  fd_ = open_file(path, 0);
  COLLIMATE_CHECK(::lseek(fd_.get(), 0, SEEK_END) >= bytes_, "{} has no {} bytes", path, bytes_);
  if (::ftruncate(fd_.get(), bytes_) != 0 || ::lseek(fd_.get(), bytes_, SEEK_SET) < 0)
    host::throw_io_error(path, "to cut the file", errno);
}

void Recording::step(const graph::Event& event, std::span<const graph::Action> actions) {
  write(writer_.step(event, actions));
}

Recorded Recording::sync() {
  flush();
  if (::fdatasync(fd_.get()) != 0) host::throw_io_error(path_, "to reach the disk", errno);
  host::sync_path(std::filesystem::path(path_).parent_path());
  return {bytes_, crc32c_};
}

void Recording::write(const std::string& text) {
  if (text.empty()) return;
  host::write_fully(fd_.get(), std::as_bytes(std::span(text)), path_);
  bytes_ += static_cast<int64_t>(text.size());
  crc32c_ = host::crc32c(std::as_bytes(std::span(text)), crc32c_);
}

}  // namespace collimate::flow

#include "collimate/flow/recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

host::FileDescriptor open_file(const std::string& path, int flags) {
  host::FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644));
  if (!fd.valid()) host::throw_io_error(path, "to open", errno);
  return fd;
}

}  // namespace

std::string recording_problem(const std::string& path, int64_t bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return error.message();
  return static_cast<int64_t>(size) < bytes ? fmt::format("{} bytes", size) : "";
}

Recording::Recording(const std::string& path, const std::string& header) : fd_(open_file(path, O_TRUNC)), path_(path) {
  write(header);
}

Recording::Recording(const std::string& path, const std::string& source, int64_t bytes) : path_(path), bytes_(bytes) {
  COLLIMATE_CHECK(recording_problem(source, bytes).empty(), "{} has no {} bytes", source, bytes);
  if (!std::filesystem::equivalent(std::filesystem::path(path).parent_path(),
                                   std::filesystem::path(source).parent_path()))
    std::filesystem::copy_file(source, path, std::filesystem::copy_options::overwrite_existing);
  fd_ = open_file(path, 0);
  if (::ftruncate(fd_.get(), bytes) != 0 || ::lseek(fd_.get(), bytes, SEEK_SET) < 0)
    host::throw_io_error(path, "to cut the file", errno);
}

void Recording::step(const graph::Event& event, std::span<const graph::Action> actions) {
  write(writer_.step(event, actions));
}

int64_t Recording::bytes() {
  write(writer_.flush());
  return bytes_;
}

int64_t Recording::sync() {
  const int64_t length = bytes();
  if (::fdatasync(fd_.get()) != 0) host::throw_io_error(path_, "to reach the disk", errno);
  host::sync_path(std::filesystem::path(path_).parent_path());
  return length;
}

void Recording::write(const std::string& text) {
  if (text.empty()) return;
  host::write_fully(fd_.get(), std::as_bytes(std::span(text)), path_);
  bytes_ += static_cast<int64_t>(text.size());
}

}  // namespace collimate::flow

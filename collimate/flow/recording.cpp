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

Recording::Recording(const std::string& path, const std::string& header) : fd_(open_file(path, O_TRUNC)), path_(path) {
  write(header);
}

Recording::Recording(const std::string& path, const std::string& source, int64_t bytes) : path_(path), bytes_(bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(source, error);
  if (error || static_cast<int64_t>(size) < bytes)
    throw base::RunError(base::expectation(source, fmt::format("the {} bytes that the checkpoint tells of", bytes),
                                           error ? error.message() : fmt::format("{}", size)));
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

void Recording::write(const std::string& text) {
  if (text.empty()) return;
  host::write_fully(fd_.get(), std::as_bytes(std::span(text)), path_);
  bytes_ += static_cast<int64_t>(text.size());
}

}  // namespace collimate::flow

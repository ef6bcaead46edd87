#include "collimate/host/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "collimate/base/error.h"

namespace collimate::host {

namespace {

namespace fs = std::filesystem;

fs::path place_of_scratch() {
  std::error_code error;
  fs::path path = fs::temp_directory_path(error);
  if (error)
    throw base::InputError(base::expectation("TMPDIR", "the directory of temporary files",
                                             path.empty() ? "no directory" : path.string() + ", which is none"));
  return path;
}

}  // namespace

ScratchFile::ScratchFile(const std::string& purpose) {
  std::string name = (place_of_scratch() / fmt::format("collimate-{}-XXXXXX", purpose)).string();
  file_ = FileDescriptor(::mkostemp(name.data(), O_CLOEXEC));
  path_ = name;
  if (!file_.valid()) throw_io_error(path_, "to make a file", errno);
  ::unlink(name.c_str());
}

int64_t ScratchFile::append(std::span<const std::byte> data) {
  const int64_t begin = size_;
  try {
    write_fully(file_.get(), data, path_);
  } catch (const base::RunError& error) {
    throw base::RunError(fmt::format("{}; TMPDIR names the directory of such files", error.what()));
  }
  size_ += std::ssize(data);
  return begin;
}

void ScratchFile::read(int64_t offset, std::span<std::byte> data) const { read_at(file_.get(), offset, data, path_); }

}  // namespace collimate::host

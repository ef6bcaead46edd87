#include "collimate/host/scratch_file.h"

#include <fmt/format.h>

#include <system_error>

#include "collimate/base/error.h"
#include "collimate/host/unnamed_file.h"

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
  const fs::path directory = place_of_scratch();
  path_ = directory / ("collimate-" + purpose);
  file_ = unnamed_file(directory, "to make a file");
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

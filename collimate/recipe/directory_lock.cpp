#include "collimate/recipe/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/mapped_file.h"
#include "collimate/recipe/run_files.h"

namespace collimate::recipe {

namespace fs = std::filesystem;

host::FileDescriptor lock_directory(const fs::path& directory) {
  const fs::path path = directory / kLockFile;
  host::FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.valid()) host::throw_io_error(path, "to open", errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      base::log_warning("{}: {}: nothing keeps a second run out of the directory", path.string(), std::strerror(errno));
      return file;
    }
    std::string holder = host::read_file(path);
    while (holder.ends_with('\n')) holder.pop_back();
    throw base::InputError(base::expectation(
        "--output", "a directory that no run is writing now",
        fmt::format("{}, which process {} is writing", directory.string(), holder.empty() ? "unknown" : holder),
        "again after its end, or another --output"));
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0) host::throw_io_error(path, "to cut the file", errno);
  host::write_fully(file.get(), std::as_bytes(std::span(pid)), path);
  return file;
}

}  // namespace collimate::recipe

#include "collimate/host/unnamed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace collimate::host {

FileDescriptor unnamed_file(const std::filesystem::path& directory, const std::string& action) {
  FileDescriptor unnamed(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (unnamed.valid()) return unnamed;
  std::string name = (directory / ".collimate-XXXXXX").string();  // mkostemp fills the pattern in
  FileDescriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (!named.valid()) throw_io_error(directory, action, errno);
  ::unlink(name.c_str());
  return named;
}

}  // namespace collimate::host

#include "collimate/host/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

// The file's text, "" when it cannot be read.
std::string text_of(const char* path) {
  try {
    return read_file(path);
  } catch (const base::Error&) {
    return "";
  }
}

// A line "VmRSS:     1234 kB" of /proc/self/status, in bytes.
int64_t status_bytes(std::string_view name) {
  const std::string text = text_of("/proc/self/status");
  const size_t at = text.find(std::string(name) + ":");
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size() + 1) * 1024;
}

// A cgroup's limit; none ("max", an absent file) is the largest number.
int64_t cgroup_limit(const char* path) {
  const int64_t limit = std::atoll(text_of(path).c_str());
  return limit > 0 ? limit : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS"); }

int64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

bool reset_peak_resident() {
  const FileDescriptor fd(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), "5", 1) == 1;
}

int64_t machine_memory_bytes() { return int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE); }

int64_t memory_limit_bytes() {
  return std::min({machine_memory_bytes(), cgroup_limit("/sys/fs/cgroup/memory.max"),
                   cgroup_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
}

}  // namespace collimate::host

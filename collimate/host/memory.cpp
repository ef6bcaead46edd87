#include "collimate/host/memory.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

// Returns the file's text, or "" when it cannot be read.
std::string text_of(const char* path) {
  try {
    return read_file(path);
  } catch (const base::Error&) {
    return "";
  }
}

// Returns the value of a line "VmRSS:     1234 kB" of /proc/self/status in bytes.
int64_t status_bytes(std::string_view name) {
  const std::string text = text_of("/proc/self/status");
  const size_t at = text.find(std::string(name) + ":");
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size() + 1) * 1024;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS"); }

int64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

}  // namespace collimate::host

#pragma once

#include <cstdint>

namespace collimate::host {

// These return the resident bytes of this process, now and at most so far (Linux: /proc/self/status), or 0 where that
// cannot be read.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace collimate::host

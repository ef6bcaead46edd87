#pragma once

#include <cstdint>

namespace collimate::host {

// Resident bytes of this process now and at most so far (Linux: /proc/self/status). 0 where it cannot be read.
int64_t resident_bytes();
int64_t peak_resident_bytes();

}  // namespace collimate::host

#pragma once

#include <cstdint>

namespace collimate::host {

// Resident bytes of this process now and at most so far (Linux: /proc/self/status). 0 where it cannot be read.
int64_t resident_bytes();
int64_t peak_resident_bytes();
// Starts a new peak at the present value, where the kernel allows; false otherwise.
bool reset_peak_resident();
// Physical memory of the machine, and the smaller of it and this process's cgroup limit.
int64_t machine_memory_bytes();
int64_t memory_limit_bytes();

}  // namespace collimate::host

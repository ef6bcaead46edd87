#pragma once

#include <sys/types.h>

#include <cstddef>

namespace collimate::host {

// write(2) to a pipe or socket that never raises SIGPIPE: a closed peer is EPIPE, whatever the process does with
// signals.
ssize_t write_without_signal(int fd, const void* data, size_t size);

void set_nonblocking(int fd);

}  // namespace collimate::host

#pragma once

#include <sys/types.h>

#include <cstddef>

namespace collimate::host {

// Calls write(2) on a pipe or socket without ever raising SIGPIPE: a closed peer gives EPIPE, whatever the process does
// with signals.
ssize_t write_without_signal(int fd, const void* data, size_t size);

void set_nonblocking(int fd);

}  // namespace collimate::host

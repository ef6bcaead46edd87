#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>

#include "collimate/base/immovable.h"

namespace collimate::host {

// While it lives, what its thread writes to a closed peer raises no SIGPIPE, whatever the process does with signals.
class PipeSignalBlocked : private base::Immovable {
 public:
  PipeSignalBlocked();
  ~PipeSignalBlocked();

 private:
  sigset_t pipe_signal_, before_;
  bool was_pending_;
};

// Calls write(2) on a pipe or socket without ever raising SIGPIPE: a closed peer gives EPIPE, whatever the process does
// with signals.
ssize_t write_without_signal(int fd, const void* data, size_t size);

void set_nonblocking(int fd);

}  // namespace collimate::host

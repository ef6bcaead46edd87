#include "collimate/host/pipe_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "collimate/base/error.h"

namespace collimate::host {

PipeSignalBlocked::PipeSignalBlocked() {
  sigset_t pending;
  sigemptyset(&pipe_signal_);
  sigaddset(&pipe_signal_, SIGPIPE);
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal_, &before_);
}

PipeSignalBlocked::~PipeSignalBlocked() {
  const timespec now{0, 0};
  if (!was_pending_) sigtimedwait(&pipe_signal_, nullptr, &now);  // takes the one that was raised meanwhile, if any
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

ssize_t write_without_signal(int fd, const void* data, size_t size) {
  const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);  // sockets have a flag for it
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  ssize_t written = 0;
  int error_number = 0;
  {
    const PipeSignalBlocked blocked;
    written = ::write(fd, data, size);
    error_number = errno;
  }
  errno = error_number;
  return written;
}

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  COLLIMATE_CHECK(flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0, "descriptor {}", fd);
}

}  // namespace collimate::host

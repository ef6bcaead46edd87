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

// Sockets have MSG_NOSIGNAL. For a pipe the signal is blocked in this thread and consumed if this write raised it.
ssize_t write_without_signal(int fd, const void* data, size_t size) {
  const ssize_t sent = ::send(fd, data, size, MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  sigset_t pipe_signal, before, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(fd, data, size);
  const int error_number = errno;
  if (written < 0 && error_number == EPIPE && !was_pending) {
    const timespec now{0, 0};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return written;
}

void set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  COLLIMATE_CHECK(flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0, "descriptor {}", fd);
}

}  // namespace collimate::host

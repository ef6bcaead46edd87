#include "collimate/host/child_lines.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "collimate/base/log.h"
#include "collimate/host/pipe_io.h"

namespace collimate::host {
namespace {

constexpr size_t kLongestLine = 1 << 16;  // in bytes; a longer one is cut in two
constexpr int kMostChunks = 1 << 8;       // read after the child; a process it started may go on writing

// Returns the part of a line that a terminal would show.
std::string shown(std::string line) {
  while (line.ends_with('\r')) line.pop_back();
  return line.substr(line.rfind('\r') + 1);
}

}  // namespace

ChildLines::ChildLines(int pipe, Sink sink)
    : pipe_(pipe), sink_(std::move(sink)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_.valid()) throw_io_error("eventfd", "to be made", errno);
  set_nonblocking(pipe_);
  thread_ = std::thread([this] { read_until_stopped(); });
}

ChildLines::~ChildLines() {
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
  for (int i = 0; i < kMostChunks && read_some(); ++i) {
  }
  if (!text_.empty()) sink_(shown(text_));
}

void ChildLines::to_log(const std::string& line) { base::log().pass_on(line); }

void ChildLines::read_until_stopped() {
  pollfd ready[2] = {{pipe_, POLLIN, 0}, {stop_.get(), POLLIN, 0}};
  while (ready[1].revents == 0) {
    if (::poll(ready, 2, -1) < 0 && errno != EINTR) return;
    if (ready[0].revents == 0) continue;
    if (!read_some() && (ready[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) ready[0].fd = -1;
  }
}

bool ChildLines::read_some() {
  char chunk[1 << 12];
  const ssize_t count = ::read(pipe_, chunk, sizeof chunk);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  text_.append(chunk, static_cast<size_t>(count));
  pass_on_lines();
  return true;
}

void ChildLines::pass_on_lines() {
  size_t begin = 0;
  for (size_t end; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1)
    sink_(shown(text_.substr(begin, end - begin)));
  text_.erase(0, begin);
  if (text_.size() < kLongestLine) return;
  sink_(shown(text_));
  text_.clear();
}

}  // namespace collimate::host

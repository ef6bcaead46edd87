#include "tests/support/host/run_command.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <tuple>

#include "collimate/host/pipe_io.h"

namespace collimate::host {
namespace {

constexpr size_t kChunkBytes = 1 << 16;

// Moves what can be moved now between the child's pipes and our strings.
class Pump {
 public:
  Pump(ChildProcess& child, std::string_view input, size_t limit, CommandResult& result)
      : child_(child), input_(input), limit_(limit), result_(result) {
    std::tie(from_child_, to_child_) = child.release_pipes();
    for (const int fd : {to_child_.get(), from_child_.get(), child.errors()}) {
      if (fd >= 0) set_nonblocking(fd);
    }
    outputs_open_ = from_child_.get() >= 0;
    errors_open_ = child.errors() >= 0;
    if (input_.empty()) close_input();
  }

  bool open() const { return outputs_open_ || errors_open_ || to_child_.get() >= 0; }
  void close_input() { to_child_.reset(); }

  void step(int milliseconds) {
    pollfd ready[3] = {{to_child_.get(), POLLOUT, 0},
                       {outputs_open_ ? from_child_.get() : -1, POLLIN, 0},
                       {errors_open_ ? child_.errors() : -1, POLLIN, 0}};
    if (::poll(ready, 3, milliseconds) <= 0) return;
    if (ready[0].revents != 0) feed();
    if (ready[1].revents != 0) outputs_open_ = drain(from_child_.get(), result_.output);
    if (ready[2].revents != 0) errors_open_ = drain(child_.errors(), result_.errors);
  }

 private:
  void feed() {
    const ssize_t count = write_without_signal(to_child_.get(), input_.data(), std::min(input_.size(), kChunkBytes));
    if (count > 0) input_.remove_prefix(static_cast<size_t>(count));
    const bool again = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (input_.empty() || (count < 0 && !again)) close_input();  // it may end without reading all
  }

  // False at the end of the stream.
  bool drain(int fd, std::string& out) {
    char chunk[kChunkBytes];
    const ssize_t count = ::read(fd, chunk, sizeof chunk);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    const size_t kept = std::min(static_cast<size_t>(count), limit_ - out.size());
    out.append(chunk, kept);
    if (kept < static_cast<size_t>(count)) result_.truncated = true;
    return count > 0;
  }

  ChildProcess& child_;
  FileDescriptor from_child_, to_child_;
  std::string_view input_;
  const size_t limit_;
  CommandResult& result_;
  bool outputs_open_ = false;
  bool errors_open_ = false;
};

}  // namespace

CommandResult run_command(ChildOptions options, const std::string& input, const base::Deadline& deadline,
                          size_t max_output_bytes) {
  options.input = ChildStream::kPipe;
  options.output = ChildStream::kPipe;
  options.errors = ChildStream::kPipe;
  ChildProcess child(options);
  CommandResult result;
  Pump pump(child, input, max_output_bytes, result);
  constexpr int kLookMilliseconds = 20;  // how often the child's end is noticed while a grandchild holds its pipes
  while (pump.open() && !child.poll() && !deadline.expired()) {
    const int left = deadline.remaining_milliseconds();
    pump.step(left < 0 ? kLookMilliseconds : std::min(left, kLookMilliseconds));
  }
  const auto status = child.wait(deadline);
  result.timed_out = !status;
  result.status = status ? *status : child.kill();
  constexpr int kLastSteps = 1 << 12;  // the rest of both pipes: their group is dead, so they end
  pump.close_input();
  for (int i = 0; i < kLastSteps && pump.open(); ++i) pump.step(0);
  return result;
}

}  // namespace collimate::host

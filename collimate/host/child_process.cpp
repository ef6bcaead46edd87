#include "collimate/host/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "collimate/base/error.h"
#include "collimate/host/spawn.h"

namespace collimate::host {
namespace {

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_io_error("pipe", "to be made", errno);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// Returns the child's side of one stream and puts our side into `ours`.
FileDescriptor open_stream(ChildStream kind, bool is_input, int inherited, FileDescriptor& ours) {
  if (kind == ChildStream::kInherit) return FileDescriptor(::fcntl(inherited, F_DUPFD_CLOEXEC, 3));
  if (kind == ChildStream::kNull) return FileDescriptor(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Pipe pipe = make_pipe();
  ours = std::move(is_input ? pipe.write_end : pipe.read_end);
  return std::move(is_input ? pipe.read_end : pipe.write_end);
}

ExitStatus decode(int status) {
  return WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
}

}  // namespace

std::string ExitStatus::description() const {
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return code == kUnknown ? "an exit code that is not known" : fmt::format("exit code {}", code);
}

ChildProcess::ChildProcess(const ChildOptions& options) {
  COLLIMATE_CHECK(!options.command.empty());
  const FileDescriptor streams[] = {open_stream(options.input, true, STDIN_FILENO, input_),
                                    open_stream(options.output, false, STDOUT_FILENO, output_),
                                    open_stream(options.errors, false, STDERR_FILENO, errors_)};
  SpawnRequest request{options.command, options.environment, options.clear_environment, options.descriptors,
                       options.working_directory};
  for (int i = 0; i < 3; ++i) {
    if (streams[i].valid()) request.descriptors.emplace_back(streams[i].get(), i);
  }
  pid_ = spawn(request);
  process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

ChildProcess::~ChildProcess() { kill(); }

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  std::swap(input_, other.input_);
  std::swap(output_, other.output_);
  std::swap(errors_, other.errors_);
  std::swap(process_, other.process_);
  return *this;
}

std::pair<FileDescriptor, FileDescriptor> ChildProcess::release_pipes() {
  return {std::move(output_), std::move(input_)};
}

// Until the dead leader is reaped, its process number cannot be reused, so the signal reaches only the rest of its
// group. When something else has reaped it, the number may be another process's.
std::optional<ExitStatus> ChildProcess::poll() {
  if (status_ || pid_ < 0) return status_;
  siginfo_t info{};
  const bool ours = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (ours && info.si_pid == 0) return {};
  if (ours) ::kill(-pid_, SIGKILL);
  int status = 0;
  pid_t reaped = -1;
  do {
    reaped = ::waitpid(pid_, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  status_ = reaped == pid_ ? decode(status) : ExitStatus{ExitStatus::kUnknown, 0};
  return status_;
}

std::optional<ExitStatus> ChildProcess::wait(const base::Deadline& deadline) {
  constexpr int kWithoutPidfdMilliseconds = 2;
  while (!poll() && pid_ >= 0) {
    if (deadline.expired()) return std::nullopt;
    const int left = deadline.remaining_milliseconds();
    pollfd ready{process_.get(), POLLIN, 0};
    if (process_.valid()) {
      ::poll(&ready, 1, left);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(kWithoutPidfdMilliseconds));
    }
  }
  return status_;
}

void ChildProcess::signal(int number) {
  if (!status_ && pid_ >= 0) ::kill(-pid_, number);
}

ExitStatus ChildProcess::kill() {
  if (pid_ < 0) return {};
  signal(SIGKILL);
  wait(base::Deadline::never());
  return *status_;
}

}  // namespace collimate::host

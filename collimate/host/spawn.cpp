#include "collimate/host/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

// A Plan holds everything that the child needs and is made before the fork, because nothing may allocate or lock
// between fork and exec.
class Plan {
 public:
  explicit Plan(const SpawnRequest& request) : request_(request), parent_(::getpid()) {
    for (const auto& argument : request.command) arguments_.push_back(const_cast<char*>(argument.c_str()));
    arguments_.push_back(nullptr);
    for (char** entry = environ; *entry && !request.clear_environment; ++entry) {
      const std::string_view text(*entry);
      const auto name = text.substr(0, text.find('='));
      const auto same = [&](const auto& pair) { return pair.first == name; };
      if (std::none_of(request.environment.begin(), request.environment.end(), same)) variables_.emplace_back(text);
    }
    for (const auto& [name, value] : request.environment) variables_.push_back(name + "=" + value);
    for (auto& variable : variables_) environment_.push_back(variable.data());
    environment_.push_back(nullptr);
    for (const auto& [ours, theirs] : request.descriptors) above_ = std::max(above_, theirs + 1);
    moved_.resize(request.descriptors.size());
  }

  // Runs in the child. When anything fails, it writes errno to `report` and ends.
  [[noreturn]] void become_command(int report) {
    report = ::fcntl(report, F_DUPFD_CLOEXEC, above_);
    const bool ready = join_parent() && place_descriptors() &&
                       (request_.working_directory.empty() || ::chdir(request_.working_directory.c_str()) == 0);
    if (ready) ::execvpe(arguments_[0], arguments_.data(), environment_.data());
    const int error_number = errno;
    if (::write(report, &error_number, sizeof error_number) < 0) ::_exit(126);
    ::_exit(127);
  }

 private:
  bool join_parent() {
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    if (::sigprocmask(SIG_SETMASK, &none, nullptr) != 0 || ::setpgid(0, 0) != 0) return false;
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;
    if (::getppid() != parent_) ::_exit(127);  // the parent died before the line above
    return true;
  }

  // Moves every descriptor out of the way of all targets first, then each to its number, where it stays open over exec.
  bool place_descriptors() {
    for (size_t i = 0; i < moved_.size(); ++i) {
      moved_[i] = ::fcntl(request_.descriptors[i].first, F_DUPFD_CLOEXEC, above_);
      if (moved_[i] < 0) return false;
    }
    for (size_t i = 0; i < moved_.size(); ++i) {
      if (::dup2(moved_[i], request_.descriptors[i].second) < 0) return false;
    }
    return true;
  }

  const SpawnRequest& request_;
  const pid_t parent_;
  std::vector<char*> arguments_;
  std::vector<std::string> variables_;
  std::vector<char*> environment_;
  std::vector<int> moved_;
  int above_ = 3;
};

// Under a SIGCHLD that is ignored, as a parent may have left it, the kernel would throw exit codes away.
void keep_exit_codes() {
  struct sigaction now {};
  if (::sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) ::signal(SIGCHLD, SIG_DFL);
}

pid_t fork_and_execute(const SpawnRequest& request) {
  keep_exit_codes();
  Plan plan(request);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_io_error(request.command[0], "to start", errno);
  const FileDescriptor report(ends[0]);
  FileDescriptor child_report(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) throw_io_error(request.command[0], "to start", errno);
  if (pid == 0) plan.become_command(child_report.get());
  child_report.reset();
  int error_number = 0;
  ssize_t count;
  do {
    count = ::read(report.get(), &error_number, sizeof error_number);  // ends when exec closes the other side
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return pid;
  ::waitpid(pid, nullptr, 0);
  throw base::InputError(
      base::expectation(request.command[0], "a command that can be started", std::strerror(error_number)));
}

// A Spawner spawns for one process. Its thread starts with the first request.
class Spawner {
 public:
  pid_t process() const { return process_; }

  pid_t spawn(const SpawnRequest& request) {
    const std::lock_guard one_at_a_time(callers_);
    if (!std::exchange(serves_, true)) std::thread([this] { serve(); }).detach();
    std::unique_lock lock(mutex_);
    request_ = &request;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !request_; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return pid_;
  }

 private:
  void serve() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // signals are for the program's own threads
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return request_ != nullptr; });
      try {
        pid_ = fork_and_execute(*request_);
      } catch (...) {
        failure_ = std::current_exception();
      }
      request_ = nullptr;
      changed_.notify_all();
    }
  }

  const pid_t process_ = ::getpid();
  std::mutex callers_;
  bool serves_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  const SpawnRequest* request_ = nullptr;
  pid_t pid_ = -1;
  std::exception_ptr failure_;
};

// Returns this process's spawner. After a plain fork this is not the parent's, whose thread the child lacks.
Spawner& own_spawner() {
  static std::atomic<Spawner*> current{nullptr};  // never destroyed: its thread runs to the end of the process
  Spawner* found = current;
  if (found != nullptr && found->process() == ::getpid()) return *found;
  auto made = std::make_unique<Spawner>();
  return current.compare_exchange_strong(found, made.get()) ? *made.release() : *found;
}

}  // namespace

pid_t spawn(const SpawnRequest& request) { return own_spawner().spawn(request); }

}  // namespace collimate::host

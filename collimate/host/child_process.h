#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/host/file_io.h"

namespace collimate::host {

enum class ChildStream { kInherit, kPipe, kNull };

struct ChildOptions {
  std::vector<std::string> command;                              // command[0] is looked up in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // variables set in addition to ours
  bool clear_environment = false;                                // our environment is left out
  std::vector<std::pair<int, int>> descriptors;                  // {ours, its number in the child (>= 3)}
  std::string working_directory;                                 // ours when empty
  ChildStream input = ChildStream::kPipe;
  ChildStream output = ChildStream::kPipe;
  ChildStream errors = ChildStream::kInherit;
};

// An ExitStatus says how a process ended: its exit code, or the signal that killed it.
struct ExitStatus {
  static constexpr int kUnknown = -1;  // code of a process that something else in our process reaped

  int code = 0;
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  std::string description() const;  // "exit code 3", "signal 9 (Killed)"
};

// A ChildProcess is a child in its own process group. It is killed with that group when the object is destroyed and
// when our process dies, however it dies. When it ends by itself, the rest of its group is killed. It is always reaped.
// Only one thread at a time may use it.
class ChildProcess {
 public:
  // Throws InputError when the command cannot be started.
  explicit ChildProcess(const ChildOptions& options);
  ~ChildProcess();
  ChildProcess(ChildProcess&&) noexcept;
  ChildProcess& operator=(ChildProcess&&) noexcept;

  pid_t pid() const { return pid_; }
  // These return our ends of the pipes, which block, or -1 where there is no pipe.
  int input() const { return input_.get(); }
  int output() const { return output_.get(); }
  int errors() const { return errors_.get(); }
  // Moves the pipes out, e.g. to a FrameSocket: {read from, write to}.
  std::pair<FileDescriptor, FileDescriptor> release_pipes();

  // Returns nothing while the child runs.
  std::optional<ExitStatus> poll();
  // Waits until the child ends. Returns nothing when the deadline passes first.
  std::optional<ExitStatus> wait(const base::Deadline& deadline);
  void signal(int number);  // to its process group
  ExitStatus kill();        // SIGKILL to the group, then reaps

 private:
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor errors_;
  FileDescriptor process_;  // pidfd
};

}  // namespace collimate::host

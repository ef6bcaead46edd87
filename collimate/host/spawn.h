#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace collimate::host {

// A SpawnRequest says what a new process is to be. The descriptors are {ours, its number there} and include 0, 1 and 2.
struct SpawnRequest {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // variables set in addition to ours
  bool clear_environment = false;                                // our environment is left out
  std::vector<std::pair<int, int>> descriptors;
  std::string working_directory;
};

// Forks and executes from a thread that lives as long as the process: Linux ties a child's "parent died" signal to the
// thread that forked. The child leads its own process group and gets SIGKILL when this process ends. Throws InputError
// when the command or directory cannot be used, RunError when there are no processes left. Thread-safe.
pid_t spawn(const SpawnRequest& request);

}  // namespace collimate::host

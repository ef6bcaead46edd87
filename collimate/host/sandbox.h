#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/host/child_process.h"

namespace collimate::host {

// A program in a sandbox may see and use this beyond the system's own programs and libraries, all of it read-only.
struct Sandbox {
  bool network = false;                  // ours; else none but its own
  std::vector<std::string> environment;  // names of variables that it has from us
  std::vector<std::string> readable;     // files and directories
  std::vector<std::string> files;        // with all beside them but what begins with a dot; so is our directory
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t processes = 256;   // and threads
  int64_t cpu_seconds = 60;  // of each process that the program starts
};

// A quarter of its memory, which its files in /tmp may hold, and those in /dev/shm; no file is larger.
int64_t scratch_bytes(const Sandbox& sandbox);

// Puts a child that runs a module of our Python package (python_module) into namespaces of its own: another user
// without rights, no network, no process and no file but those above and an empty /tmp, few variables. What it starts
// ends with it, and it ends as it would outside. Linux 5.12, x86-64. Where the kernel refuses, its answer to the first
// frame is {"refused": what was expected, "got", "remedy"}.
ChildOptions in_sandbox(const ChildOptions& python, const Sandbox& sandbox);

}  // namespace collimate::host

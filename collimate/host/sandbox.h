#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/host/child_process.h"

namespace collimate::host {

// A Sandbox lists what a program in it may see and use beyond the system's own programs and libraries. All files are
// read-only.
struct Sandbox {
  bool network = false;                  // ours; otherwise one of its own alone
  std::vector<std::string> environment;  // names of our variables that the program gets
  std::vector<std::string> readable;     // files and directories
  std::vector<std::string> files;        // with all beside them but names that begin with a dot; so is our directory
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t processes = 256;   // counts threads too
  int64_t cpu_seconds = 60;  // of each process that the program starts
};

// Returns how much memory its files in /tmp and in /dev/shm may hold each: a quarter of its memory. No file is larger.
int64_t scratch_bytes(const Sandbox& sandbox);

// Puts a child that runs a module of our Python package (python_module) into namespaces of its own: it has another user
// without rights, no network, no processes and files except those above and an empty /tmp, and few variables. Every
// process that it starts ends with it, and it ends as it would outside. Requires Linux 5.12 and x86-64. Where the
// kernel refuses, the child's answer to the first frame is {"refused": what was expected, "got", "remedy"}.
ChildOptions in_sandbox(const ChildOptions& python, const Sandbox& sandbox);

}  // namespace collimate::host

#pragma once

#include <string>

#include "collimate/host/child_process.h"

namespace collimate::host {

struct CommandResult {
  ExitStatus status;
  std::string output;
  std::string errors;
  bool timed_out = false;  // then it was killed, and the rest is what came until then
  bool truncated = false;  // output or errors were cut to the limit
};

// Runs a command to its end, feeding `input` and collecting both outputs (at most `max_output_bytes` each).
CommandResult run_command(ChildOptions options, const std::string& input, const base::Deadline& deadline,
                          size_t max_output_bytes = 1 << 20);

}  // namespace collimate::host

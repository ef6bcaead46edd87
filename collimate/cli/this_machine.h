#pragma once

#include <cstdint>
#include <string>

#include "collimate/plan/inputs/machine.h"

namespace collimate::cli {

// Constants by which the planner knows this machine's CPU.
struct ThisMachine {
  collimate::plan::Machine machine;  // constants without lengths
  std::string source;                // "measured in 3.1 s and kept in FILE", "read from FILE"
};

// Constants of so many CPU devices of one thread side by side (of as many as there are cores, where those are fewer):
// from the file that an earlier call has left, else from short GRPO runs of two small models with random weights, which
// take a few seconds. The file is of one processor, instruction set and version of the program, in
// $XDG_CACHE_HOME/collimate or ~/.cache/collimate; one that cannot be read is made anew. StoppedError on a signal.
ThisMachine this_machine(int64_t devices);

}  // namespace collimate::cli

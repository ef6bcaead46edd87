#pragma once

#include <cstdint>
#include <string>

#include "collimate/plan/inputs/machine.h"

namespace collimate::cli {

// ThisMachine holds the planner's constants of this machine's CPU.
struct ThisMachine {
  collimate::plan::Machine machine;  // constants without lengths
  std::string source;                // "measured in 3.1 s and kept in FILE", "read from FILE"
};

// Returns constants for `devices` CPU devices of one thread that work side by side, at most one for each core. Reads
// the file that an earlier call has left; without one, measures short GRPO runs of two small models with random
// weights, which takes a few seconds, and writes it. The file, in $XDG_CACHE_HOME/collimate or ~/.cache/collimate,
// holds for one processor, instruction set, number of devices and version of the program; an unreadable one is made
// anew. Throws StoppedError on a signal.
ThisMachine this_machine(int64_t devices);

}  // namespace collimate::cli

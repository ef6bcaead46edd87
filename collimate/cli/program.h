#pragma once

namespace collimate::cli {

// Runs the whole of `collimate`: the verb that the words name. Prints errors and returns the exit code. A program with
// parts of its own registers them before this call. The allocator, ATen's threads and the handling of SIGXFSZ stay set
// for the process. Worker processes run this program again, with the verb `worker`.
int run_program(int argc, char** argv);

}  // namespace collimate::cli

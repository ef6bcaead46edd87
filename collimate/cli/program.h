#pragma once

namespace collimate::cli {

// The whole of `collimate` but what a program registers before: runs the verb that the words name, prints errors, and
// returns the exit code. What it sets of the process (allocator, ATen's threads, a signal) holds from then on. Workers
// that are child processes are this program again, with the verb `worker`.
int run_program(int argc, char** argv);

}  // namespace collimate::cli

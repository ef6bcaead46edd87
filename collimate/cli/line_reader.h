#pragma once

#include <optional>
#include <string>

namespace collimate::cli {

// A LineReader reads lines of standard input, with editing and history (libedit) if input and output are a terminal,
// else unedited. A process has at most one object, used from one thread.
class LineReader {
 public:
  LineReader();

  // Waits for a line and returns it, nothing at the end of the input. The prompt is shown on a terminal only.
  std::optional<std::string> read(const char* prompt);

 private:
  bool terminal_ = false;
};

}  // namespace collimate::cli

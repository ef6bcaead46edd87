#pragma once

#include <optional>
#include <string>

namespace collimate::cli {

// Lines of standard input: with editing and history (libedit) where input and output are a terminal, as they come
// elsewhere. One object in a process, one thread.
class LineReader {
 public:
  LineReader();

  // Blocking; nothing at the end of the input. The prompt is shown on a terminal only.
  std::optional<std::string> read(const char* prompt);

 private:
  bool terminal_ = false;
};

}  // namespace collimate::cli

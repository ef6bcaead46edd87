#include "collimate/cli/line_reader.h"

// clang-format off
#include <cstdio>  // needed by editline, which does not include it
#include <editline/readline.h>
// clang-format on
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string_view>

namespace collimate::cli {

LineReader::LineReader() : terminal_(isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1) {
  if (!terminal_) return;
  // Characters beyond ASCII can be edited only in a UTF-8 locale.
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
  using_history();
  stifle_history(1000);
}

std::optional<std::string> LineReader::read(const char* prompt) {
  if (!terminal_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  const std::unique_ptr<char, decltype(&std::free)> line(readline(prompt), &std::free);
  if (!line) {
    std::fputs("\n", stdout);
    return std::nullopt;
  }
  if (*line != '\0') add_history(line.get());
  return std::string(line.get());
}

}  // namespace collimate::cli

#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "collimate/base/immovable.h"

namespace collimate::base {

enum class LogLevel { kInfo, kWarning, kError };

// Log lines "12:03:11.042 info  [rank 0 policy] text" on stderr and in every LogFile. Thread-safe; lines never
// mix.
class Log {
 public:
  Log();
  ~Log();

  void write(LogLevel level, std::string_view text);
  // A line for the files alone, which stderr shows in another form: of info, or a warning where the text begins with
  // "warning: ", which the line's level then says.
  void record(std::string_view text);
  // A line of stderr alone, as it is: neither time nor level, nothing for the files.
  void show(std::string_view line);
  // A line that another process wrote, as it is, on stderr and in the files.
  void pass_on(std::string_view line);
  // Writes what several parts of a run meet, each under the same key, but the first of them alone: once since the
  // newest file was opened, and every time where none is open. A worker's process leaves the choice to who reads its
  // lines.
  void write_once(LogLevel level, const std::string& key, std::string_view text);
  // From now on what write_once writes is marked: a PassedLines of another process reads it.
  void mark_for_reader();
  // Replaces the progress line at the bottom of a terminal, or writes a plain line elsewhere; empty removes it.
  void progress_line(std::string_view text, bool terminal);

 private:
  friend class LogFile;
  friend class PassedLines;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The process's log.
Log& log();

// Passes on the lines that one other process writes, in their order; of what it wrote by write_once those for which it
// is the first time here.
class PassedLines {
 public:
  explicit PassedLines(Log& log = base::log()) : log_(&log) {}
  void operator()(const std::string& line);

 private:
  Log* log_;
  bool told_ = false;  // the text that is read now
};

// While it lives, a log's lines are appended to `path` too; several may live at once. RunError naming the path.
class LogFile : private Immovable {
 public:
  explicit LogFile(const std::filesystem::path& path, Log& log = base::log());
  ~LogFile();

 private:
  Log& log_;
  int fd_;
};

// Puts "[prefix]" before this thread's lines while it lives; inner prefixes replace outer ones.
class LogPrefix : private Immovable {
 public:
  explicit LogPrefix(std::string prefix);
  ~LogPrefix();

 private:
  std::string outer_;
};

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log().write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log().write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log().write(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace collimate::base

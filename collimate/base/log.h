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

// A Log writes lines "12:03:11.042 info  [rank 0 policy] text" to stderr and to every open LogFile. Thread-safe; lines
// never mix.
class Log {
 public:
  Log();
  ~Log();

  void write(LogLevel level, std::string_view text);
  // Writes a line to the files alone, when stderr shows it in another form. The level is info; it is warning for a text
  // that begins with "warning: ", which is then left out.
  void record(std::string_view text);
  // Writes a line to stderr alone, as it is, without time and level.
  void show(std::string_view line);
  // Writes a line of another process, as it is, to stderr and to the files.
  void pass_on(std::string_view line);
  // Writes a text that several parts of a run may report under the same key, and drops all but the first: the first
  // since the newest file was opened. Where no file is open it writes every one. A worker's process, in which
  // mark_for_reader was called, writes all of them and leaves the choice to the process that reads its lines.
  void write_once(LogLevel level, const std::string& key, std::string_view text);
  // From now on write_once marks its lines, so that a PassedLines in another process recognises them.
  void mark_for_reader();
  // Replaces the progress line at the bottom of a terminal, where an empty text removes it. Elsewhere it writes a plain
  // line.
  void progress_line(std::string_view text, bool terminal);

 private:
  friend class LogFile;
  friend class PassedLines;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the process's log.
Log& log();

// A PassedLines passes on the lines of one other process, in their order. Lines that the process wrote by write_once
// are dropped when this log has already written one of the same key.
class PassedLines {
 public:
  explicit PassedLines(Log& log = base::log()) : log_(&log) {}
  void operator()(const std::string& line);

 private:
  Log* log_;
  bool told_ = false;  // the marked text that is read now was already written and is dropped
};

// While a LogFile lives, the lines of a log are appended to `path` too; several may live at once. Throws RunError
// naming the path when the file cannot be opened.
class LogFile : private Immovable {
 public:
  explicit LogFile(const std::filesystem::path& path, Log& log = base::log());
  ~LogFile();

 private:
  Log& log_;
  int fd_;
};

// While a LogPrefix lives, this thread's lines have "[prefix]" before their text; inner prefixes replace outer ones.
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

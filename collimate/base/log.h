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
  // A line of info for the files alone: what stderr shows in another form.
  void record(std::string_view text);
  // A line of stderr alone, as it is: neither time nor level, nothing for the files.
  void show(std::string_view line);
  // A line that another process wrote, as it is, on stderr and in the files.
  void pass_on(std::string_view line);
  // Replaces the progress line at the bottom of a terminal, or writes a plain line elsewhere; empty removes it.
  void progress_line(std::string_view text, bool terminal);

 private:
  friend class LogFile;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The process's log.
Log& log();

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

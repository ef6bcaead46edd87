#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace collimate::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Throws InputError for a name other than debug, info, warning, error.
LogLevel parse_log_level(const std::string& name);

// Log lines "12:03:11.042 info  [rank 0 policy] text" on stderr and, when opened, in a file. Thread-safe; lines never
// mix.
class Log {
 public:
  Log();
  ~Log();

  void set_level(LogLevel level);  // for stderr; the file gets info and above, debug too when set
  void set_stderr(bool enabled);
  // Appends to `path`. Throws RunError naming it.
  void open_file(const std::filesystem::path& path);
  void write(LogLevel level, std::string_view text);
  // Replaces the progress line at the bottom of a terminal, or writes a plain line elsewhere; empty removes it.
  void progress_line(std::string_view text, bool terminal);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The process's log.
Log& log();

// Puts "[prefix]" before this thread's lines while it lives; inner prefixes replace outer ones.
class LogPrefix {
 public:
  explicit LogPrefix(std::string prefix);
  ~LogPrefix();
  LogPrefix(const LogPrefix&) = delete;
  LogPrefix& operator=(const LogPrefix&) = delete;

 private:
  std::string outer_;
};

template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log().write(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
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

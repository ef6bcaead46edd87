#include "collimate/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::base {
namespace {

constexpr const char* kLevelNames[] = {"info", "warning", "error"};
constexpr const char* kClearLine = "\r\x1b[2K";

thread_local std::string thread_prefix;

// One write; a log that cannot be written must not stop the run.
void put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

std::string time_of_day() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1'000'000);
}

std::string line_of(LogLevel level, std::string_view text) {
  const std::string prefix = thread_prefix.empty() ? "" : "[" + thread_prefix + "] ";
  return fmt::format("{} {:<7} {}{}\n", time_of_day(), kLevelNames[static_cast<int>(level)], prefix, text);
}

}  // namespace

struct Log::Impl {
  // The bar stays the last line of the terminal: removed before a line, drawn again after it.
  void show(std::string_view line) const {
    put(STDERR_FILENO, bar.empty() ? std::string(line) : fmt::format("{}{}{}", kClearLine, line, bar));
  }

  void append(std::string_view line) const {
    for (const int fd : files) put(fd, line);
  }

  std::mutex mutex;
  std::vector<int> files;
  std::set<std::string> told;  // what first_time was asked of
  std::string bar;
};

Log::Log() : impl_(std::make_unique<Impl>()) {}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view text) {
  const std::string line = line_of(level, text);
  const std::lock_guard lock(impl_->mutex);
  impl_->show(line);
  impl_->append(line);
}

void Log::record(std::string_view text) {
  constexpr std::string_view kWarning = "warning: ";
  const bool warns = text.starts_with(kWarning);
  if (warns) text.remove_prefix(kWarning.size());
  const std::string line = line_of(warns ? LogLevel::kWarning : LogLevel::kInfo, text);
  const std::lock_guard lock(impl_->mutex);
  impl_->append(line);
}

void Log::show(std::string_view line) {
  const std::lock_guard lock(impl_->mutex);
  impl_->show(std::string(line) + "\n");
}

void Log::pass_on(std::string_view line) {
  const std::string whole = std::string(line) + "\n";
  const std::lock_guard lock(impl_->mutex);
  impl_->show(whole);
  impl_->append(whole);
}

bool Log::first_time(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->files.empty() || impl_->told.insert(text).second;
}

void Log::progress_line(std::string_view text, bool terminal) {
  const std::lock_guard lock(impl_->mutex);
  if (!terminal) {
    if (!text.empty()) put(STDERR_FILENO, std::string(text) + "\n");
    return;
  }
  impl_->bar = text;
  put(STDERR_FILENO, kClearLine + impl_->bar);
}

Log& log() {
  static Log instance;
  return instance;
}

LogFile::LogFile(const std::filesystem::path& path, Log& log)
    : log_(log), fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (fd_ < 0) throw RunError(expectation(path.string(), "to open the log", std::strerror(errno)));
  const std::lock_guard lock(log_.impl_->mutex);
  log_.impl_->files.push_back(fd_);
  log_.impl_->told.clear();
}

LogFile::~LogFile() {
  {
    const std::lock_guard lock(log_.impl_->mutex);
    std::erase(log_.impl_->files, fd_);
  }
  ::close(fd_);
}

LogPrefix::LogPrefix(std::string prefix) : outer_(std::move(thread_prefix)) { thread_prefix = std::move(prefix); }

LogPrefix::~LogPrefix() { thread_prefix = std::move(outer_); }

}  // namespace collimate::base

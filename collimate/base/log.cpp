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
constexpr std::string_view kMark =
    "\x1e of what is told once: ";  // followed by a hash before a marked text, by nothing after it

thread_local std::string thread_prefix;

// Writes all of the text in one call if possible. Errors are ignored, as a log that cannot be written must not stop the
// run.
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
  // The progress bar stays the last line of the terminal: it is removed before a line and drawn again after it.
  void show(std::string_view line) const {
    put(STDERR_FILENO, bar.empty() ? std::string(line) : fmt::format("{}{}{}", kClearLine, line, bar));
  }

  void append(std::string_view line) const {
    for (const int fd : files) put(fd, line);
  }

  bool first_time(const std::string& hash) { return files.empty() || told.insert(hash).second; }

  std::mutex mutex;
  std::vector<int> files;
  std::set<std::string> told;  // hashes of keys of write_once
  bool marks = false;
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

void Log::write_once(LogLevel level, const std::string& key, std::string_view text) {
  const std::string line = line_of(level, text), hash = fmt::format("{:x}", std::hash<std::string>()(key));
  const std::lock_guard lock(impl_->mutex);
  if (impl_->marks) {
    put(STDERR_FILENO, fmt::format("{0}{1}\n{2}{0}\n", kMark, hash, line));
  } else if (impl_->first_time(hash)) {
    impl_->show(line);
    impl_->append(line);
  }
}

void Log::mark_for_reader() {
  const std::lock_guard lock(impl_->mutex);
  impl_->marks = true;
}

void PassedLines::operator()(const std::string& line) {
  if (!line.starts_with(kMark)) {
    if (!told_) log_->pass_on(line);
    return;
  }
  const std::string hash = line.substr(kMark.size());
  const std::lock_guard lock(log_->impl_->mutex);
  told_ = !hash.empty() && !log_->impl_->first_time(hash);
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
  static Log& instance = *new Log;  // never destroyed: objects of other files' statics log until the process ends
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

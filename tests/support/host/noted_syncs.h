#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

// A program that has this has fsync and fdatasync of its own, which do what the C library's do. One of its sources
// includes it.
namespace collimate::test {

// While one lives it is told the path of each file or directory that this process brings to the disk; `data`: by
// fdatasync. Its function runs on the thread that syncs, ahead of the sync, one at a time.
class NotedSyncs {
 public:
  using Told = std::function<void(const std::filesystem::path& path, bool data)>;

  explicit NotedSyncs(Told told) { set(std::move(told)); }
  ~NotedSyncs() { set({}); }
  NotedSyncs(const NotedSyncs&) = delete;
  NotedSyncs& operator=(const NotedSyncs&) = delete;

  static void note(int fd, bool data) {
    const std::lock_guard lock(mutex());
    std::error_code none;
    if (told()) told()(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none), data);
  }

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static Told& told() {
    static Told one;
    return one;
  }
  static void set(Told next) {
    const std::lock_guard lock(mutex());
    told() = std::move(next);
  }
};

}  // namespace collimate::test

extern "C" int fsync(int fd) {
  collimate::test::NotedSyncs::note(fd, false);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

extern "C" int fdatasync(int fd) {
  collimate::test::NotedSyncs::note(fd, true);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

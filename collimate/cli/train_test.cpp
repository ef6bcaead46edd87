#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "collimate/cli/verbs.h"
#include "tests/support/small_task.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

// A file or directory that was told to reach the disk: was there a report in it by then, and was anything printed?
struct Synced {
  fs::path path;
  bool report = false, printed = false;
};

// Calls of fsync in this process.
struct SyncWatch {
  std::mutex mutex;
  bool on = false;
  std::vector<Synced> seen;
};

SyncWatch& sync_watch() {
  static SyncWatch watch;
  return watch;
}

void note_sync(int fd) {
  SyncWatch& watch = sync_watch();
  const std::lock_guard lock(watch.mutex);
  if (!watch.on) return;
  std::error_code none;
  const fs::path path = fs::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
  std::fflush(stdout);
  struct stat printed {};
  ::fstat(STDOUT_FILENO, &printed);
  watch.seen.push_back({path, fs::exists(path / "report.html"), printed.st_size > 0});
}

}  // namespace
}  // namespace collimate::cli

// This stands in place of the C library's: it does the same and notes the call.
extern "C" int fsync(int fd) {
  collimate::cli::note_sync(fd);
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace collimate::cli {
namespace {

// The machine may stop right after the run has said that it is done: the report that it names is on the disk by then.
TEST(Train, ItsReportIsOnTheDiskBeforeItSaysWhereThatIs) {
  const test::Scratch scratch("train");
  test::write_small_task(scratch.path());
  test::write_text(scratch / "run.yaml", test::small_config("sft", scratch.path()));
  const fs::path output = fs::canonical(scratch.path()) / "run";  // as /proc names it
  testing::internal::CaptureStdout();
  sync_watch().on = true;
  EXPECT_EQ(train({scratch / "run.yaml", "--output", output.string()}), 0);
  sync_watch().on = false;
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::HasSubstr("report: " + (output / "report.html").string()));
  std::vector<Synced> last;  // of the report's bytes, then of its name
  for (const Synced& synced : sync_watch().seen) {
    if (synced.path == output / "report.html.partial") last = {synced};
    if (synced.path == output && synced.report && last.size() == 1) last.push_back(synced);
  }
  ASSERT_EQ(last.size(), 2U) << "bytes, then name";
  for (const Synced& synced : last) EXPECT_FALSE(synced.printed) << synced.path;
}

}  // namespace
}  // namespace collimate::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "collimate/cli/verbs.h"
#include "tests/support/host/noted_syncs.h"
#include "tests/support/small_task.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

// A file or directory that was told to reach the disk: was there a report in it by then, and was anything printed?
struct Synced {
  fs::path path;
  bool report = false, printed = false;
};

Synced synced_now(const fs::path& path) {
  std::fflush(stdout);
  struct stat printed {};
  ::fstat(STDOUT_FILENO, &printed);
  return {path, fs::exists(path / "report.html"), printed.st_size > 0};
}

// The machine may stop right after the run has said that it is done: the report that it names is on the disk by then.
TEST(Train, ItsReportIsOnTheDiskBeforeItSaysWhereThatIs) {
  const test::Scratch scratch("train");
  test::write_small_task(scratch.path());
  test::write_text(scratch / "run.yaml", test::small_config("sft", scratch.path()));
  const fs::path output = fs::canonical(scratch.path()) / "run";  // as /proc names it
  std::vector<Synced> seen;
  testing::internal::CaptureStdout();
  {
    const test::NotedSyncs noted([&](const fs::path& path, bool) { seen.push_back(synced_now(path)); });
    EXPECT_EQ(train({scratch / "run.yaml", "--output", output.string()}), 0);
  }
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              testing::HasSubstr("report: " + (output / "report.html").string()));
  std::vector<Synced> last;  // of the report's bytes, then of its name
  for (const Synced& synced : seen) {
    if (synced.path == output / "report.html.partial") last = {synced};
    if (synced.path == output && synced.report && last.size() == 1) last.push_back(synced);
  }
  ASSERT_EQ(last.size(), 2U) << "bytes, then name";
  for (const Synced& synced : last) EXPECT_FALSE(synced.printed) << synced.path;
}

}  // namespace
}  // namespace collimate::cli

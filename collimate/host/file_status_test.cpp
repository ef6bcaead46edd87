#include "collimate/host/file_status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "collimate/base/error.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

using FileStatus = TempDirectory;

TEST_F(FileStatus, TellsWhatIsThere) {
  fs::create_directories(directory_ / "a/b");
  std::ofstream(directory_ / "a/b/file") << "text";
  EXPECT_TRUE(path_exists(directory_ / "a"));
  EXPECT_FALSE(path_exists(directory_ / "c"));
  EXPECT_TRUE(is_file(directory_ / "a/b/file"));
  EXPECT_FALSE(is_file(directory_ / "a/b"));
  EXPECT_TRUE(host::is_directory(directory_ / "a/b"));
  EXPECT_FALSE(host::is_directory(directory_ / "c"));
  EXPECT_EQ(paths_in(directory_), std::vector{directory_ / "a"});
  auto below = paths_below(directory_);
  std::sort(below.begin(), below.end());
  EXPECT_EQ(below, (std::vector{directory_ / "a", directory_ / "a/b", directory_ / "a/b/file"}));
  remove_path(directory_ / "a");
  remove_path(directory_ / "a");
  EXPECT_TRUE(paths_in(directory_).empty());
}

// A link to itself is an error for every user.
TEST_F(FileStatus, NamesThePathOfWhichItCannotTell) {
  const fs::path loop = directory_ / "loop";
  fs::create_symlink(loop, loop);
  const auto expect_named = [&](const char* action, const auto& call) {
    EXPECT_EQ(message_of<base::RunError>(call),
              fmt::format("[{}] expected {}, got Too many levels of symbolic links", loop.string(), action));
  };
  expect_named("to look for it", [&] { path_exists(loop); });
  expect_named("to look for it", [&] { is_file(loop); });
  expect_named("to look for it", [&] { host::is_directory(loop); });
  expect_named("to list what is in it", [&] { paths_in(loop); });
  expect_named("to list what is in it", [&] { paths_below(loop); });
  remove_path(loop);
  EXPECT_FALSE(path_exists(loop));
}

}  // namespace
}  // namespace collimate::host

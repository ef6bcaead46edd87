#include "collimate/host/beside_libraries.h"

#include <gtest/gtest.h>

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

// The build tree is laid out as an installation, so that a test finds what a program does.
TEST(BesideLibraries, FindsWhatStandsBesideThem) {
  const fs::path found = beside_libraries("python/collimate/reward_worker.py");
  const fs::path program = fs::read_symlink("/proc/self/exe");
  EXPECT_TRUE(found.is_absolute()) << found;
  EXPECT_TRUE(fs::equivalent(found, program.parent_path() / "../lib/collimate/python/collimate/reward_worker.py"));
}

TEST(BesideLibraries, KnowsTheSystemsDirectoriesToo) {
  EXPECT_EQ(beside_libraries("libstdc++.so.6").filename(), "libstdc++.so.6");
}

TEST(BesideLibraries, IsEmptyWhereThereIsNone) { EXPECT_TRUE(beside_libraries("no-such-file").empty()); }

}  // namespace
}  // namespace collimate::host

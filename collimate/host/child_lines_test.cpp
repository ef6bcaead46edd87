#include "collimate/host/child_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "collimate/host/child_process.h"

namespace collimate::host {
namespace {

using Lines = std::vector<std::string>;

// Returns the lines of a shell command's standard error that are passed on by the command's end.
Lines lines_of(const std::string& script) {
  Lines lines;
  ChildProcess child({.command = {"sh", "-c", script}, .errors = ChildStream::kPipe});
  const ChildLines passed_on(child.errors(), [&](const std::string& line) { lines.push_back(line); });
  EXPECT_TRUE(child.wait(base::Deadline::after(60)));
  return lines;
}

TEST(ChildLines, AreWholeLines) {
  EXPECT_EQ(lines_of("printf 'a b\\n\\nc' >&2; sleep 0.1; printf 'd\\ne' >&2"), (Lines{"a b", "", "cd", "e"}));
  EXPECT_EQ(lines_of("true"), Lines{});
}

TEST(ChildLines, OfOneThatIsWrittenOverTheLastTextCounts) {
  EXPECT_EQ(lines_of("printf '10%%\\r50%%\\r100%%\\ndone\\r\\n' >&2"), (Lines{"100%", "done"}));
}

TEST(ChildLines, ALineWithoutEndIsCut) {
  const Lines lines = lines_of("head -c 200000 /dev/zero | tr '\\0' x >&2");
  ASSERT_GT(lines.size(), 1U);
  size_t characters = 0;
  for (const std::string& line : lines) characters += line.size();
  EXPECT_EQ(characters, 200000U);
}

TEST(ChildLines, EndWhileAnotherProcessHoldsThePipe) {
  EXPECT_EQ(lines_of("setsid sh -c 'sleep 60' & echo parent >&2"), Lines{"parent"});
}

}  // namespace
}  // namespace collimate::host

#include "collimate/cli/shell_word.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/host/run_command.h"

namespace collimate::cli {
namespace {

TEST(ShellWord, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(shell_word("policy=llama2-7b,reward=opt-1.3b"), "policy=llama2-7b,reward=opt-1.3b");
  EXPECT_EQ(shell_word("my run.yaml"), "'my run.yaml'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("a\nb'"), "$'a\\nb\\''");
  EXPECT_EQ(shell_word(""), "''");
  // Each but the last would be something else to a shell, were it not quoted.
  std::string line = "printf '%s\\n'", expected;
  for (const std::string word :
       {"/*", "/???", "/[a-z]*", "a&b", "a;b",  "a|cat", "a<b",  ">/dev/null", "(a)", "~root",
        "#",  "$0",   "`true`",  "a b", "it's", "\"",    "a\\b", "{a,b}",      "",    "--a=b:1,+2@3%.yaml"}) {
    line.append(" ").append(shell_word(word));
    expected.append(word).append("\n");
  }
  const auto deadline = base::Deadline::after(60);
  EXPECT_EQ(host::run_command({.command = {"sh", "-c", line}}, "", deadline).output, expected) << line;
}

// Any words are on one line, and a shell reads them back.
TEST(ShellWord, GoesThroughAShell) {
  std::mt19937 dice(7);
  const std::string letters = "ab \t\n\r'\"\\$`#&;*?[]{}()<>|~!=:,.-_/é";
  std::string line = "printf '%s\\n'", expected;
  for (int round = 0; round < 500; ++round) {
    std::string word;
    for (size_t i = dice() % 8; i > 0; --i) word += letters[dice() % letters.size()];
    line.append(" ").append(shell_word(word));
    expected.append(word).append("\n");
  }
  EXPECT_EQ(line.find_first_of("\n\r"), std::string::npos);
  const auto deadline = base::Deadline::after(60);
  EXPECT_EQ(host::run_command({.command = {"bash", "-c", line}}, "", deadline).output, expected);
}

}  // namespace
}  // namespace collimate::cli

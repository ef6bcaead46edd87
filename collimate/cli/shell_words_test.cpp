#include "collimate/cli/shell_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "collimate/base/error.h"
#include "collimate/host/child_process.h"

namespace collimate::cli {
namespace {

TEST(ShellWords, QuotesOnlyWhatNeedsIt) {
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

TEST(ShellWords, ReadsWhatPeopleWrite) {
  EXPECT_THAT(shell_words("plan  'my run.yaml' --set \"a.b=\\\"x\\\" \\n\" c\\ d\t''", "line"),
              testing::ElementsAre("plan", "my run.yaml", "--set", "a.b=\"x\" \\n", "c d", ""));
  EXPECT_TRUE(shell_words("  ", "line").empty());
  try {
    shell_words("plan 'open", "plan.yaml");
    FAIL() << "an open quote";
  } catch (const base::InputError& error) {
    EXPECT_STREQ(error.what(), "[plan.yaml] expected a closing ', got the end of the line");
  }
}

// Any words go round and back, on one line.
TEST(ShellWords, GoRoundAndBack) {
  std::mt19937 dice(7);
  const std::string letters = "ab \t\n\r'\"\\$`#&;*?[]{}()<>|~!=:,.-_/é";
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> words(1 + dice() % 4);
    std::string line;
    for (std::string& word : words) {
      for (size_t i = dice() % 8; i > 0; --i) word += letters[dice() % letters.size()];
      if (!line.empty()) line += ' ';
      line += shell_word(word);
    }
    EXPECT_EQ(line.find_first_of("\n\r"), std::string::npos);
    EXPECT_EQ(shell_words(line, "line"), words) << line;
  }
}

}  // namespace
}  // namespace collimate::cli

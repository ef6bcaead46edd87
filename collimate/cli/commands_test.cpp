#include "collimate/cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/cli/verbs.h"
#include "tests/support/base/error_of.h"

namespace collimate::cli {
namespace {

using testing::Contains;
using testing::Field;
using testing::HasSubstr;

Command find(const std::string& words) {
  for (const Command& command : commands())
    if (command.words == words) return command;
  ADD_FAILURE() << words;
  return {};
}

TEST(Commands, AreAllVerbsWithTheirOwnOptions) {
  for (const Verb& verb : verbs()) EXPECT_EQ(find(verb.name).summary, verb.summary);
  const Command train = find("train");
  EXPECT_THAT(train.arguments, Contains(Field(&CommandOption::name, "CONFIG")));
  EXPECT_TRUE(train.arguments.at(0).required);
  EXPECT_TRUE(train.sets_keys);
  const auto option = [](const Command& command, const std::string& name) {
    return *std::find_if(command.options.begin(), command.options.end(),
                         [&](const CommandOption& one) { return one.name == name; });
  };
  EXPECT_TRUE(option(train, "--output").valued);
  EXPECT_FALSE(option(train, "--dry-run").valued);
  EXPECT_THAT(find("chat").options, Contains(Field(&CommandOption::name, "--top-p")));  // a section's flag
}

TEST(Commands, KnowWhatAnArgumentMayBe) {
  EXPECT_THAT(find("init").choices, Contains("grpo"));
  EXPECT_THAT(find("help").choices, Contains("run.iterations"));
  EXPECT_THAT(find("bench").choices, Contains("quickstart"));
  EXPECT_THAT(find("bench quickstart").options, Contains(Field(&CommandOption::name, "--reduced")));
  EXPECT_FALSE(find("bench planner").sets_keys) << "its --set takes constants";
  for (const Verb& one : benches()) EXPECT_THAT(base::message_of([] { bench({"none"}); }), HasSubstr(one.name));
}

TEST(Commands, KnowTheValuesOfAnOptionThatHasFew) {
  const auto values = [](const std::string& words, const std::string& name) {
    for (const CommandOption& option : find(words).options)
      if (option.name == name) return option.choices;
    ADD_FAILURE() << name;
    return std::vector<std::string>();
  };
  EXPECT_THAT(values("chat", "--chat-template"), testing::ElementsAre("auto", "chatml", "plain", "user-bot"));
  EXPECT_THAT(values("generate", "--long-rows"), testing::ElementsAre("stop", "drop", "truncate"));
  EXPECT_THAT(values("generate", "--ignore-eos"), testing::ElementsAre("true", "false"));
  EXPECT_THAT(values("eval", "--measure"), Contains("perplexity"));
  EXPECT_THAT(values("chat", "--max-tokens"), testing::IsEmpty());
  EXPECT_THAT(values("generate", "--data"), testing::IsEmpty());
}

TEST(Commands, AVerbThatIsOnlyAskedForItsOptionsCanBeCalledAfterwards) {
  commands();
  EXPECT_THAT(base::message_of([] { train({}); }), HasSubstr("CONFIG"));
}

TEST(Commands, AnotherShellIsRefused) {
  EXPECT_EQ(base::message_of([] { completion({"tcsh"}); }),
            "[collimate completion] expected one of bash, zsh, fish, man, got \"tcsh\"");
}

TEST(ManPage, NoCharacterOfATextIsARequest) {
  const std::string page = man_page({{.words = "a-b", .summary = ".x \\ … y", .options = {{"--c", "'d", true}}}});
  EXPECT_THAT(page, HasSubstr(".SS \"collimate a\\-b\"\n\\&.x \\e \\[u2026] y\n.TP\n\\fB\\-\\-c VALUE\\fR\n\\&'d\n"));
}

}  // namespace
}  // namespace collimate::cli

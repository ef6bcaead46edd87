#include <gmock/gmock.h>

#include "collimate/host/atomic_file.h"
#include "collimate/text/dataset.h"
#include "tests/support/text/written_files.h"

namespace collimate::text {
namespace {

using testing::HasSubstr;

class BadRowsOfAFile : public testing::Test {
 protected:
  // The message for which a file of this content is refused; "" where it is taken.
  std::string error(const std::string& content, const BadRows& bad) const {
    host::write_file_atomically(path_, content);
    return message_of<base::InputError>([&] { Dataset::read({{.path = path_}}, bad); });
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path("a.jsonl");
  const std::string good_ = "{\"prompt\": \"a\"}\n", bad_ = "{\"prompt\": 1}\n";
};

TEST_F(BadRowsOfAFile, AnErrorSaysWhatLeavesThemOut) {
  const BadRows drop{.remedy = "the key: drop"};
  const std::string reason = "[" + path_ + ":2 column prompt] expected a prompt (text, messages or ids), got number";
  EXPECT_EQ(error(good_ + bad_ + "{\n" + good_, drop), reason + "; try the key: drop, which leaves out 2 of 4 rows");
  EXPECT_THAT(error(good_ + "{\"prompt\": 123456789012345678901234567890}\n", drop),
              HasSubstr("\", or the key: drop, which leaves out 1 of 2 rows"));  // after another remedy
}

TEST_F(BadRowsOfAFile, AnErrorNamesNoRemedyThatDoesNotApply) {
  EXPECT_THAT(error(good_ + bad_, {}), testing::EndsWith("got number")) << "there is no key";
  EXPECT_THAT(error(bad_ + bad_, {.remedy = "the key: drop"}), testing::EndsWith("got number")) << "no row is left";
  EXPECT_EQ(error(good_ + bad_, {.drop = true, .remedy = "the key: drop"}), "");
}

TEST_F(BadRowsOfAFile, RowsOfAnotherShapeAreNamed) {
  const std::string answered = "{\"prompt\": \"a\", \"completion\": \"b\"}\n",
                    pair = R"({"prompt": "a", "chosen": "b", "rejected": "c"})";
  const std::string talk = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]})";
  EXPECT_EQ(error(answered + talk, {.remedy = "the key: drop"}),
            "[" + path_ +
                ":2] expected prompt + completion, as the file's first row is, got messages; try a file for each "
                "shape, and a list of these files, or the key: drop, which leaves out 1 of 2 rows");
  EXPECT_THAT(error(answered + pair, {}), HasSubstr("got preference pairs (prompt, chosen, rejected); try"));
  EXPECT_THAT(error(talk + "\n" + answered, {}), HasSubstr(":2] expected messages, as the file's first row is, got"));
  EXPECT_THAT(error(answered + good_, {}), HasSubstr(":2 column completion] expected a value, got none"));
  EXPECT_THAT(error(answered + R"({"messages": []})", {}), HasSubstr(":2 column prompt] expected a value, got none"));
  EXPECT_EQ(error(good_ + answered, {}), "") << "a prompt with one more column";
}

TEST_F(BadRowsOfAFile, WhatNothingShowsTheModelIsRefused) {
  for (const std::string column : {"images", "image", "videos", "audios"}) {
    const std::string more = ", \"" + column + "\": [{}]}";
    const std::string named = "[" + path_ + ":1 column " + column + "] expected no " + column +
                              " beside a prompt, got some, which nothing here shows to the model; try data columns: {" +
                              column + ": hidden_" + column + "} to train without showing them";
    for (const std::string row : {R"({"prompt": "b")", R"({"prompt": "b", "completion": "c")",
                                  R"({"prompt": "b", "chosen": "c", "rejected": "d")",
                                  R"({"messages": [{"role": "user", "content": "b"}])", R"({"prompt": [1])"})
      EXPECT_EQ(error(row + more, {}), named) << row;
  }
  EXPECT_EQ(
      error(
          R"({"prompt": "b", "completion": "c", "tools": [], "chat_template_kwargs": {}, "images": "", "videos": null})",
          {}),
      "");
}

TEST_F(BadRowsOfAFile, WhatATemplateIsGivenStandsBesideMessages) {
  const auto with = [&](const std::string& prompt, const std::string& column) {
    return error("{\"prompt\": " + prompt + ", " + column + "}", {});
  };
  const std::string messages = R"([{"role": "user", "content": "b"}])", tools = R"("tools": [{"name": "f"}])";
  const std::string variables = R"("chat_template_kwargs": {"a": 1})";
  EXPECT_EQ(with(messages, tools + ", " + variables), "");
  EXPECT_EQ(with(messages, R"("tools": "[{\"name\": \"f\"}]")"), "");
  const std::string prompt_of_messages = "] expected a prompt of messages beside it, which a chat template renders";
  for (const std::string prompt : {R"("b")", "[1]"}) {
    EXPECT_THAT(with(prompt, tools), HasSubstr("column tools" + prompt_of_messages));
    EXPECT_THAT(with(prompt, variables), HasSubstr("column chat_template_kwargs" + prompt_of_messages));
  }
  EXPECT_THAT(with(messages, R"("tools": {"name": "f"})"), HasSubstr("expected a list of definitions of tools"));
  for (const char* tool : {R"("f")", R"({"function": "f"})", R"({"function": null})", R"({"function": {"name": 5}})"})
    EXPECT_THAT(with(messages, fmt::format(R"("tools": [{}])", tool)),
                HasSubstr("expected a list of definitions of tools"));
  EXPECT_THAT(with(messages, R"("tools": "[")"), HasSubstr("column tools] expected well-formed JSON"));
  EXPECT_THAT(with(messages, R"("chat_template_kwargs": [1])"), HasSubstr("expected variables of the chat template"));
}

TEST_F(BadRowsOfAFile, WhatNoTemplateReadsInAMessageIsRefused) {
  const auto said = [&](const std::string& more) {
    return error(
        R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", )" + more + "}]}", {});
  };
  EXPECT_THAT(said(R"("function_call": {"name": "f"})"), HasSubstr("expected messages without function_call"));
  EXPECT_THAT(said(R"("weight": 0)"), HasSubstr("expected messages without weight"));
  EXPECT_THAT(said(R"("weight": 1)"), HasSubstr("data.train_on says which turns are trained"));
  EXPECT_EQ(said(R"("reasoning_content": "hm", "function_call": null, "weight": null)"), "");
}

TEST_F(BadRowsOfAFile, LabelsBesideAnswersAreTrueOrFalse) {
  const auto row = [](const std::string& value) {
    return R"({"prompt": "p", "completion": "c", "label": )" + value + "}";
  };
  const auto label = [&](const std::string& content) {
    host::write_file_atomically(path_, content);
    return Dataset::read({{.path = path_}}, {}).example(0).label;
  };
  EXPECT_EQ(label(row("1")), true);
  EXPECT_EQ(label(row("0")), false);
  EXPECT_EQ(label(row("0.0")), false);
  EXPECT_EQ(label(R"({"instruction": "p", "output": "c", "label": 0})"), false);
  for (const std::string value : {"-1", "2", R"("no")", R"("yes")"})
    EXPECT_THAT(error(row(value), {}), HasSubstr("[" + path_ +
                                                 ":1 column label] expected true or false (or 1 or 0) beside an "
                                                 "answer, got " +
                                                 value));
}

}  // namespace
}  // namespace collimate::text

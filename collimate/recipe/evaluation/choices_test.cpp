#include "collimate/recipe/evaluation/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/batch/standard_keys.h"
#include "collimate/text/character_tokenizer.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_task.h"

namespace collimate::recipe {
namespace {

using base::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

class Choices : public testing::Test {
 protected:
  Choices() { test::write_small_model(root_ / "start"); }

  // The rows of a file of these lines, by a tokenizer of digits, and what of it was left out.
  ChoiceRows made(const std::string& lines, const rlhf::SourceOptions& options = {}) const {
    test::write_text(root_ / "questions.jsonl", lines);
    const auto tokenizer = text::load_tokenizer(root_ / "start");
    const text::Renderer renderer(*tokenizer, text::make_chat_template(*tokenizer), {.end_turn = false});
    return choice_rows(text::Dataset::read({{.path = root_ / "questions.jsonl"}}), renderer, options, {});
  }
  Batch rows(const std::string& lines) const { return made(lines).rows; }
  std::vector<bool> answers(const std::string& lines) const {
    const Batch made = rows(lines);
    std::vector<bool> out;
    for (int64_t r = 0; r < made.rows(); ++r) out.push_back(made.json(batch::kExample, r).at("is_answer"));
    return out;
  }

  test::Scratch root_{"choices"};
};

TEST_F(Choices, EachIsARowOfItsQuestion) {
  const Batch made = rows(R"({"prompt": "1=", "choices": ["2", "345"], "answer": 1})"
                          "\n"
                          R"({"prompt": "2=", "choices": ["7", "8", "9"], "answer": 0})");
  ASSERT_EQ(made.rows(), 5);
  EXPECT_EQ(made.get(batch::kPromptUid, 0), made.get(batch::kPromptUid, 1));
  EXPECT_NE(made.get(batch::kPromptUid, 1), made.get(batch::kPromptUid, 2));
  EXPECT_EQ(made.json(batch::kExample, 1).at("characters"), 3);
  const auto trainable = made.row(batch::kTrainable, 1);
  EXPECT_THAT(std::vector<int>(trainable.begin(), trainable.end()), ElementsAre(0, 0, 1, 1, 1))
      << "the choice alone, without what ends a turn";
}

TEST_F(Choices, AnswersAreNumbersLettersLabelsOrTexts) {
  const auto is_second = ElementsAre(false, true);
  for (const char* answer : {"1", "\"1\"", "\"B\"", "\"34\""})
    EXPECT_THAT(answers(fmt::format(R"({{"prompt": "1=", "choices": ["2", "34"], "answer": {}}})", answer)), is_second)
        << answer;
  for (const char* label : {"2", "y"})
    EXPECT_THAT(answers(fmt::format(R"({{"prompt": "1=", "choices": {{"text": ["2", "3"], "label": ["x", "{0}"]}},)"
                                    R"( "answer": "{0}"}})",
                                    label)),
                is_second)
        << "a label goes before a text: " << label;
}

// One without an answer, and one with a choice that is longer than the others.
constexpr const char* kThree = R"({"prompt": "1=", "choices": ["2", "3"], "answer": 7}
{"prompt": "2=", "choices": ["2", "333333"], "answer": 0}
{"prompt": "3=", "choices": ["4", "5"], "answer": 1})";

TEST_F(Choices, QuestionsAreLeftOutWholeAndCounted) {
  rlhf::SourceOptions options{.max_tokens = 6, .long_rows = rlhf::LongRows::kDrop, .bad_rows = {.drop = true}};
  const ChoiceRows kept = made(kThree, options);
  ASSERT_EQ(kept.rows.rows(), 2);
  EXPECT_EQ(kept.bad.rows, 1);
  EXPECT_THAT(kept.bad.first, HasSubstr(":1 column answer] expected a number from 0 to 1"));
  EXPECT_EQ(kept.too_long.rows, 1);
  EXPECT_THAT(kept.too_long.first, HasSubstr(":2] expected at most 6 tokens with each of the choices, got 8"));
  options.max_tokens = 0;
  EXPECT_EQ(made(kThree, options).rows.get(batch::kPromptUid, 2), kept.rows.get(batch::kPromptUid, 0))
      << "uids are of the row's place in the file, whatever is left out";
  options.max_tokens = 2;
  EXPECT_THAT(message_of([&] { made(kThree, options); }),
              HasSubstr("[evaluation.data] expected at least one question to use, got none: all 3 were left out; try a "
                        "look at the first: ["));
}

TEST_F(Choices, ThoseThatMayNotBeLeftOutSayHowTheyCould) {
  rlhf::SourceOptions options{.max_tokens = 6, .bad_rows = {.remedy = "data.bad_rows: drop"}};
  EXPECT_THAT(message_of([&] {
                made(R"({"prompt": "3=", "choices": ["4", "5"], "answer": 1})"
                     "\n"
                     R"({"prompt": "1=", "choices": ["2"], "answer": 0})",
                     options);
              }),
              HasSubstr("got 1; try data.bad_rows: drop, which leaves out 1 of 2 rows"));
  options.bad_rows.drop = true;
  EXPECT_THAT(
      message_of([&] { made(kThree, options); }),
      HasSubstr(":2] expected at most 6 tokens with each of the choices, got 8; try evaluation.long_rows: drop"));
  options.long_rows = rlhf::LongRows::kTruncate;
  EXPECT_THAT(
      message_of([&] { made(kThree, options); }),
      HasSubstr("with each of the choices, for a question is never cut, got 8; try evaluation.long_rows: drop"));
}

TEST_F(Choices, WhatIsNoQuestionIsNamed) {
  const auto message = [&](const std::string& rest) {
    return message_of([&] { rows("{\"prompt\": \"1=\"" + rest + "}"); });
  };
  const std::string place = (root_ / "questions.jsonl") + ":1 column ";
  EXPECT_THAT(
      message(R"(, "choices": ["2", "3"], "answer": 2)"),
      HasSubstr(place + "answer] expected a number from 0 to 1, or the letter, label or text of a choice, got 2"));
  EXPECT_THAT(message(R"(, "choices": ["2", "3"], "answer": "C")"), HasSubstr("got \"C\""));
  EXPECT_THAT(message(R"(, "choices": ["2", "3"])"), HasSubstr("got none; try evaluation.data: {path"));
  EXPECT_THAT(message(R"(, "choices": ["2"], "answer": 0)"),
              HasSubstr(place + "choices] expected at least two choices, got 1"));
  EXPECT_THAT(message(R"(, "choices": ["2", ""], "answer": 0)"), HasSubstr("a list of texts, none of them empty"));
  EXPECT_THAT(message(R"(, "choices": {"text": ["2", "3"], "label": ["A"]}, "answer": "A")"),
              HasSubstr("expected 2 labels, as there are texts, got 1"));
  EXPECT_THAT(message(""), HasSubstr(place + "choices] expected a list of texts, got none"));
  EXPECT_THAT(message_of([&] { rows(R"({"question": "1", "choices": ["2", "3"], "answer": 0})"); }),
              HasSubstr("expected a chat template"));
}

}  // namespace
}  // namespace collimate::recipe

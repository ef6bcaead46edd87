#include "collimate/rlhf/prompt/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/types/loss.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

using text::TrainOn;

class PromptSource : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // The message for which rows of this content are refused, less the file's name; "" when they are taken.
  std::string refused(const std::string& rows, RowKind kind, TrainOn train_on = TrainOn::kCompletion) {
    std::ofstream(path_) << rows;
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, "plain"), {.train_on = train_on});
    try {
      RowSource(text::Dataset::read({{.path = path_}}), renderer,
                {.kind = kind, .bad_rows = {.remedy = "the key: drop"}});
    } catch (const base::InputError& error) {
      const std::string message = error.what(), name = "[" + path_;
      return message.starts_with(name) ? "[F" + message.substr(name.size()) : message;
    }
    return "";
  }

  RowSource source(const std::string& rows, const SourceOptions& options, const std::string& chat = "plain") {
    std::ofstream(path_) << rows;
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, chat), {});
    return {text::Dataset::read({{.path = path_}}, options.bad_rows), renderer, options};
  }
  // The texts of all examples' first rows.
  std::vector<std::string> texts(const RowSource& source) const {
    std::vector<std::string> all;
    for (int64_t i = 0; i < source.examples(); ++i) all.push_back(tokenizer_.decode(source.rendered(i)[0].ids, false));
    return all;
  }

  const std::string path_ = testing::TempDir() + "/collimate-prompt-source.jsonl";
  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();
};

// Rendered, an empty answer is what ends a turn alone: the model would learn to say nothing.
TEST_F(PromptSource, EmptyAnswersAreNotTrainedTowards) {
  const std::string good = "{\"prompt\": \"ab\", \"completion\": \"c\"}\n";
  const std::string empty = "{\"prompt\": \"ab\", \"completion\": \"\"}\n";
  EXPECT_EQ(refused(good, RowKind::kDemonstration), "");
  EXPECT_EQ(refused(good + empty, RowKind::kDemonstration),
            "[F:2] expected an answer in \"completion\" to train on, got an empty text; try leaving the row out, "
            "or the key: drop, which leaves out 1 of 2 rows");
  EXPECT_EQ(refused(good + empty, RowKind::kPrompt), "");  // the policy answers
  EXPECT_EQ(refused("{\"prompt\": \"ab\", \"chosen\": \"\", \"rejected\": \"c\"}", RowKind::kPreference),
            "[F:1] expected an answer in \"chosen\" to train on, got an empty text; try leaving the row out");
  EXPECT_EQ(refused("{\"prompt\": \"ab\", \"chosen\": \"c\", \"rejected\": \"\"}", RowKind::kPreference), "");
}

TEST_F(PromptSource, EmptyTurnsOfTheAssistantAreRefusedWhereTheyAreTrained) {
  const std::string row = R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""},
      {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]})";
  std::string line = row;
  std::erase(line, '\n');
  EXPECT_EQ(refused(line, RowKind::kDemonstration), "");
  for (const TrainOn train_on : {TrainOn::kAssistantTurns, TrainOn::kAllTokens})
    EXPECT_EQ(refused(line, RowKind::kDemonstration, train_on),
              "[F:1] expected an answer in message 2 to train on, got an empty text; try leaving the row out, or "
              "data.train_on: completion");
}

std::string answered(const std::string& prompt, const std::string& answer) {
  return fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", prompt, answer);
}

TEST_F(PromptSource, RowsOfAnotherKindAreNamed) {
  const std::string pair = R"({"prompt": "a", "chosen": "b", "rejected": "c"})";
  EXPECT_THAT(refused(pair, RowKind::kDemonstration),
              testing::HasSubstr("got a pair of a chosen and a rejected answer, which recipe: dpo or reward reads"));
  EXPECT_THAT(refused(R"({"messages": [{"role": "user", "content": "a"}]})", RowKind::kDemonstration),
              testing::HasSubstr("got messages of which the last is not the assistant's, which recipe: grpo or ppo"));
  EXPECT_THAT(refused(answered("a", "b"), RowKind::kPreference),
              testing::HasSubstr("got a prompt with a completion, which recipe: sft reads"));
}

TEST_F(PromptSource, PlainTextIsNoPrompt) {
  EXPECT_THAT(
      refused(R"({"text": "ab"})", RowKind::kPrompt),
      testing::HasSubstr("expected a prompt, got an empty one beside an answer, as plain text has; try columns: "
                         "{text: prompt} in data.train"));
}

TEST_F(PromptSource, AnswersLabelledFalseAreNotTrainedTowards) {
  const std::string good = R"({"prompt": "a", "completion": "b", "label": true})";
  const std::string bad = R"({"prompt": "a", "completion": "c", "label": false})";
  EXPECT_EQ(
      refused(good + "\n" + bad, RowKind::kDemonstration),
      "[F:2] expected an answer to train towards, got one with label: false; try the key: drop, which leaves out 1 of "
      "2 rows");
  const RowSource taken = source(good + "\n" + bad, {.kind = RowKind::kDemonstration, .bad_rows = {.drop = true}});
  EXPECT_EQ(texts(taken), std::vector<std::string>{"ab<eos>"});
  EXPECT_EQ(taken.bad().rows, 1);
}

// A file that generate has written has the row's own answer and the drawn one: which is meant, the user says.
TEST_F(PromptSource, OneOfTwoAnswersIsNotChosenForTheUser) {
  for (const std::string& own :
       {std::string(R"("question": "a", "answer": "b")"), std::string(R"("instruction": "a", "output": "b")")})
    EXPECT_THAT(base::message_of([&] {
                  source("{" + own + R"(, "completion": "c"})", {.kind = RowKind::kDemonstration, .max_tokens = 64});
                }),
                testing::HasSubstr(":1] expected one answer to train towards, got the row's own and another"))
        << own;
  const std::string null = R"({"question": "a", "answer": "b", "completion": null})";
  EXPECT_EQ(texts(source(null, {.kind = RowKind::kDemonstration, .max_tokens = 64})).size(), 1U);
  EXPECT_EQ(source(R"({"question": "a", "answer": "b", "completion": "c"})", {.kind = RowKind::kPrompt}).examples(), 1);
}

TEST_F(PromptSource, MarkedAnswersHaveTheirMark) {
  const std::string rows = R"({"prompt": "a", "completion": "b", "label": true}
{"prompt": "c", "completion": "", "label": false})";
  const RowSource taken = source(rows, {.kind = RowKind::kMarked, .shuffle = false});
  EXPECT_EQ(taken.rows(0, 2, 0, 2).all(kDesirable), (std::vector<float>{1, 0}));
  EXPECT_THAT(refused(R"({"prompt": "a", "completion": "", "label": true})", RowKind::kMarked),
              testing::HasSubstr("expected an answer in \"completion\" to train on"));
  EXPECT_THAT(refused(answered("a", "b"), RowKind::kMarked),
              testing::HasSubstr("expected a row with \"label\", true or false, got a prompt with a completion"));
}

// Each prompt with the answer of the row before it in its iteration, whatever part of the iteration is asked for.
TEST_F(PromptSource, MismatchedAnswersAreThoseOfTheRowBefore) {
  std::string rows;
  for (const char* one : {"ab", "cd", "ef", "gh"})
    rows += fmt::format(R"({{"prompt": "{}", "completion": "{}", "label": true}})"
                        "\n",
                        one[0], one[1]);
  const RowSource taken = source(rows, {.kind = RowKind::kMarked, .shuffle = false, .mismatched = true});
  const Batch all = taken.rows(0, 4, 0, 4);
  for (int64_t r = 0; r < 4; ++r) {
    const auto own = all.row(batch::kIds, r), other = all.row(batch::kIds, (r + 3) % 4);
    const auto mixed = all.row(kMismatchedIds, r);
    EXPECT_EQ(std::vector<int32_t>(mixed.begin(), mixed.end()), (std::vector<int32_t>{own[0], other[1], other[2]}));
    const auto marked = all.row(kMismatchedTrainable, r);
    EXPECT_EQ(std::vector<uint8_t>(marked.begin(), marked.end()), (std::vector<uint8_t>{0, 1, 1}));
  }
  const Batch part = taken.rows(0, 4, 2, 1);
  const auto wanted = all.row(kMismatchedIds, 2), got = part.row(kMismatchedIds, 0);
  EXPECT_TRUE(std::ranges::equal(got, wanted));
  const RowSource cut =
      source(rows, {.kind = RowKind::kMarked, .model_tokens = 2, .shuffle = false, .mismatched = true});
  EXPECT_EQ(cut.rows(0, 4, 0, 4).row(kMismatchedIds, 1).size(), 2U) << "the model reads no more";
}

TEST_F(PromptSource, PairsCanBeTrainedFromWhereTheyDiffer) {
  const text::CharacterTokenizer endless(text::CharacterVocabulary{.tokens = {"a", "b", "c", "d"}});
  const auto masks = [&](const std::string& chosen, const std::string& rejected, bool ends = true) {
    std::ofstream(path_) << R"({"prompt": "a", "chosen": ")" << chosen << R"(", "rejected": ")" << rejected << "\"}";
    const text::Tokenizer& tokenizer = ends ? tokenizer_ : endless;
    const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer, "plain"), {});
    const RowSource taken(text::Dataset::read({{.path = path_}}), renderer,
                          {.kind = RowKind::kPreference, .from_difference = true});
    const Batch rows = taken.rows(0, 2, 0, 2);
    std::vector<std::vector<uint8_t>> out;
    for (int64_t r : {0, 1}) {
      const auto row = rows.row(batch::kTrainable, r);
      out.emplace_back(row.begin(), row.end());
    }
    return out;
  };
  using Masks = std::vector<std::vector<uint8_t>>;
  EXPECT_EQ(masks("bcd", "bce"), (Masks{{0, 0, 0, 1, 1}, {0, 0, 0, 1, 1}}));
  EXPECT_EQ(masks("bc", "d"), (Masks{{0, 1, 1, 1}, {0, 1, 1}}));
  EXPECT_EQ(masks("bc", "bc"), (Masks{{0, 0, 0, 1}, {0, 0, 0, 1}}));
  EXPECT_EQ(masks("bc", "bcdd", false), (Masks{{0, 0, 1}, {0, 0, 1, 1, 1}}));
  EXPECT_EQ(masks("bcd", "b", false), (Masks{{0, 1, 1, 1}, {0, 1}}));
}

// Letters from a on are the ids from 2 on, behind <pad> and <eos>.
TEST_F(PromptSource, PairsCanBePaddedWhereTheyDiverge) {
  const std::string pairs = R"({"prompt": "a", "chosen": "bcd", "rejected": "be"}
{"prompt": "a", "chosen": "b", "rejected": "b"})";
  const RowSource taken = source(pairs, {.kind = RowKind::kPreference, .shuffle = false, .region_padding = 0});
  const Batch rows = taken.rows(0, 4, 0, 4);
  const auto ids = [&](int64_t r) {
    return std::vector(rows.row(batch::kIds, r).begin(), rows.row(batch::kIds, r).end());
  };
  const auto trained = [&](int64_t r) {
    return std::vector<int>(rows.row(batch::kTrainable, r).begin(), rows.row(batch::kTrainable, r).end());
  };
  EXPECT_EQ(ids(0), (std::vector<int32_t>{2, 3, 4, 5, 1}));
  EXPECT_EQ(ids(1), (std::vector<int32_t>{2, 3, 6, 1, 0}));
  for (const int64_t r : {0, 1}) EXPECT_EQ(trained(r), (std::vector<int>{0, 0, 1, 1, 1}));
  for (const int64_t r : {2, 3}) EXPECT_EQ(trained(r), (std::vector<int>{0, 0, 1})) << "equal rows: the last token";
  EXPECT_EQ(rows.all(batch::kUnpaddedTokens), (std::vector<int64_t>{5, 4, 3, 3}));
  EXPECT_FALSE(source(pairs, {.kind = RowKind::kPreference}).all().has(batch::kUnpaddedTokens.name));
}

TEST_F(PromptSource, LabelsOfNumbersAreThoseOfBooleans) {
  const std::string bad = R"({"prompt": "a", "completion": "c", "label": 0})";
  EXPECT_THAT(refused(bad, RowKind::kDemonstration), testing::HasSubstr("got one with label: false"));
  EXPECT_EQ(texts(source(R"({"prompt": "a", "completion": "b", "label": 1})", {.kind = RowKind::kDemonstration})),
            std::vector<std::string>{"ab<eos>"});
}

TEST_F(PromptSource, AnswersLabelledFalseAreNoGroundTruth) {
  const std::string bad = R"({"prompt": "a", "completion": "c", "label": false)";
  EXPECT_THAT(refused(bad + "}", RowKind::kPrompt), testing::HasSubstr("[F:1] expected an answer that can be the"));
  const RowSource taken = source(bad + R"(, "ground_truth": "d"})", {});
  EXPECT_EQ(taken.example(0).at("ground_truth"), "d");
}

TEST_F(PromptSource, BadRowsAreDroppedAndCounted) {
  const RowSource taken = source(answered("a", "b") + answered("c", "") + "{\n" + answered("d", "e"),
                                 {.kind = RowKind::kDemonstration, .bad_rows = {.drop = true}, .shuffle = false});
  EXPECT_EQ(texts(taken), (std::vector<std::string>{"ab<eos>", "de<eos>"}));
  EXPECT_EQ(taken.bad().rows, 1);  // the other one is the data set's
  EXPECT_EQ(taken.epoch_examples(), 2);
  EXPECT_EQ(taken.rows(0, 2, 0, 2).rows(), 2);
}

TEST_F(PromptSource, AnswersRenderedWithoutTheirThoughtsAreCounted) {
  text::CharacterVocabulary vocabulary{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz<>/|")) vocabulary.tokens.emplace_back(1, c);
  vocabulary.chat_template = "{% for m in messages %}{{ m.content.split('</think>')[-1] }}|{% endfor %}";
  const text::CharacterTokenizer tokenizer(std::move(vocabulary));
  const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer), {});
  const auto thoughtless = [&](const std::string& rows, RowKind kind) {
    std::ofstream(path_) << rows;
    return RowSource(text::Dataset::read({{.path = path_}}), renderer, {.kind = kind}).thoughtless();
  };
  const std::string asked = R"([{"role": "user", "content": "a"}])", plain = R"("b")";
  const std::string thinks = R"("<think>well</think>b")";
  const auto row = [&](const std::string& answer) {
    return "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": " +
           answer + "}]}\n";
  };
  const text::LeftOut out = thoughtless(row(plain) + row(thinks) + row(thinks), RowKind::kDemonstration);
  EXPECT_EQ(out.rows, 2);
  EXPECT_EQ(out.first, path_ + ":2");
  EXPECT_EQ(thoughtless(row(thinks), RowKind::kPrompt).rows, 0);
  const std::string pair = "{\"prompt\": " + asked + ", \"chosen\": " + plain + ", \"rejected\": " + thinks + "}";
  EXPECT_EQ(thoughtless(pair, RowKind::kPreference).rows, 1);
}

TEST_F(PromptSource, LongRowsStopDropOrAreTruncated) {
  const std::string rows = answered("ab", "c") + answered("ab", "cdefg") + answered("abcdef", "g");
  SourceOptions options{.kind = RowKind::kDemonstration, .max_tokens = 5};
  EXPECT_THROW(
      {
        try {
          source(rows, options);
        } catch (const base::InputError& error) {
          EXPECT_NE(std::string(error.what())
                        .find(":2] expected at most 5 tokens, got 8; try a larger data.max_tokens, "
                              "or data.long_rows: drop or truncate"),
                    std::string::npos)
              << error.what();
          throw;
        }
      },
      base::InputError);
  options.long_rows = LongRows::kDrop;
  const RowSource dropped = source(rows, options);
  EXPECT_EQ(texts(dropped), std::vector<std::string>{"abc<eos>"});
  EXPECT_EQ(dropped.too_long().rows, 2);
  options.long_rows = LongRows::kTruncate;
  const RowSource cut = source(rows, options);
  EXPECT_EQ(texts(cut), (std::vector<std::string>{"abc<eos>", "abcde"}));  // of the third nothing is left to train
  EXPECT_EQ(cut.truncated(), 1);
  EXPECT_EQ(cut.too_long().rows, 1);
  EXPECT_TRUE(cut.rendered(1)[0].cut);
}

TEST_F(PromptSource, APairThatIsTheSameUpToTheCutIsLeftOut) {
  const std::string pairs =
      "{\"prompt\": \"ab\", \"chosen\": \"cdef\", \"rejected\": \"cdeg\"}\n"
      "{\"prompt\": \"ab\", \"chosen\": \"cdef\", \"rejected\": \"gdef\"}\n";
  const RowSource cut =
      source(pairs, {.kind = RowKind::kPreference, .max_tokens = 5, .long_rows = LongRows::kTruncate});
  EXPECT_EQ(texts(cut), (std::vector<std::string>{"abcde"}));  // of the pair that is left, the chosen row
  EXPECT_EQ(cut.truncated(), 1);
  EXPECT_EQ(cut.too_long().rows, 1);
  EXPECT_TRUE(
      cut.too_long().first.ends_with(":1] expected at most 5 tokens, got 7 in a pair that is the same up to the cut"))
      << cut.too_long().first;
}

// A larger limit than the model has positions would be refused in turn.
TEST_F(PromptSource, TheRemedyOfALongRowIsOneThatWorks) {
  const auto remedy = [&](RowKind kind, int64_t model_tokens, int64_t max_tokens = 5) {
    const std::string rows = kind == RowKind::kPrompt ? R"({"prompt": "abcdefg"})" : answered("ab", "cdef");
    const std::string message =
        base::message_of([&] { source(rows, {.kind = kind, .max_tokens = max_tokens, .model_tokens = model_tokens}); });
    return message.substr(message.find("; try ") + 6);
  };
  const std::string leave_out = "data.long_rows: drop or truncate";
  EXPECT_EQ(remedy(RowKind::kDemonstration, 7), "a larger data.max_tokens, or " + leave_out);
  EXPECT_EQ(remedy(RowKind::kDemonstration, 6), leave_out);
  EXPECT_EQ(remedy(RowKind::kDemonstration, 4),
            leave_out + ", together with data.max_tokens: 4, as the model has no more positions");
  EXPECT_EQ(remedy(RowKind::kPrompt, 7), "a larger rollout.prompt_tokens, or " + leave_out);
  EXPECT_EQ(remedy(RowKind::kPrompt, 4), leave_out +
                                             ", together with rollout.prompt_tokens: 4, as the model has no more "
                                             "positions beside a completion");
}

// An evaluation compares models with other limits row by row.
TEST_F(PromptSource, ARowHasItsUidsWhateverRowsAreLeftOut) {
  const std::string rows = answered("ab", "cdefg") + answered("ab", "c") + answered("a", "b");
  SourceOptions options{.kind = RowKind::kDemonstration, .long_rows = LongRows::kDrop, .shuffle = false};
  const RowSource whole = source(rows, options);
  options.max_tokens = 5;
  const RowSource part = source(rows, options);
  ASSERT_EQ(part.examples(), 2);
  EXPECT_EQ(part.row(0), 1);
  EXPECT_EQ(part.place(0), path_ + ":2");
  for (int64_t r = 0; r < 2; ++r) {
    EXPECT_EQ(part.all().get(batch::kUid, r), whole.all().get(batch::kUid, r + 1));
    EXPECT_EQ(part.all().get(batch::kPromptUid, r), whole.all().get(batch::kPromptUid, r + 1));
  }
  EXPECT_EQ(part.rows(0, 2, 0, 2).get(batch::kUid, 0), whole.rows(0, 2, 0, 2).get(batch::kUid, 0))
      << "by its place in training";
}

TEST_F(PromptSource, ATruncatedPromptKeepsItsEnd) {
  const RowSource cut =
      source(R"({"prompt": "abcdef"})", {.kind = RowKind::kPrompt, .max_tokens = 4, .long_rows = LongRows::kTruncate});
  EXPECT_EQ(texts(cut), std::vector<std::string>{"cdef"});
  EXPECT_EQ(cut.rendered(0)[0].prompt_tokens, 4);
}

TEST_F(PromptSource, WhatIsLeftOutWholeIsAnError) {
  EXPECT_THROW(
      source(answered("ab", "cde"), {.kind = RowKind::kDemonstration, .max_tokens = 3, .long_rows = LongRows::kDrop}),
      base::InputError);
}

// Without a template nothing would mark where a turn ends; a prompt of one turn is its text.
TEST_F(PromptSource, TurnsThatNothingMarksAreRefused) {
  const std::string user = R"({"role": "user", "content": "a"})",
                    assistant = R"({"role": "assistant", "content": "b"})";
  const std::string row = "{\"messages\": [" + user + ", " + assistant + "]}";
  EXPECT_THROW(source(row, {.kind = RowKind::kDemonstration}, "auto"), base::InputError);
  EXPECT_EQ(texts(source(row, {.kind = RowKind::kDemonstration}, "plain")), std::vector<std::string>{"ab<eos>"});
  EXPECT_EQ(texts(source("{\"prompt\": [" + user + "]}", {}, "auto")), std::vector<std::string>{"a"});
  EXPECT_EQ(texts(source(answered("a", "b"), {.kind = RowKind::kDemonstration}, "auto")),
            std::vector<std::string>{"ab<eos>"});
}

// The tokenizer here writes no bos: a text's first token is given, the others are trained.
TEST_F(PromptSource, PlainTextNeedsNoBos) {
  const RowSource taken = source("{\"text\": \"abc\"}", {.kind = RowKind::kDemonstration});
  EXPECT_EQ(texts(taken), std::vector<std::string>{"abc<eos>"});
  EXPECT_EQ(taken.rendered(0)[0].trainable, (std::vector<uint8_t>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace collimate::rlhf

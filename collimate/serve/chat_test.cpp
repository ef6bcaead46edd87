#include "collimate/serve/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/serve/columns.h"
#include "collimate/text/character_tokenizer.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::serve {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Columns, ARowComesWhenBothHalvesAreCertain) {
  Columns columns(23);  // ten characters a side
  EXPECT_EQ(columns.push(0, "left\n"), "");
  EXPECT_EQ(columns.push(1, "ri"), "");
  EXPECT_EQ(columns.push(1, "ght\nmore"), "left       | right\n");
  EXPECT_EQ(columns.finish(0), "");
  EXPECT_EQ(columns.finish(1), "           | more\n");
}

TEST(Columns, LinesBreakAtSpacesOrElsewhereAndWideCharactersCountTwice) {
  Columns columns(23);
  columns.finish(1);
  EXPECT_EQ(columns.push(0, "one two three fourfourfourfour "), "one two    |\nthree      |\nfourfourfo |\n");
  EXPECT_EQ(columns.finish(0), "urfour     |\n");
  Columns wide(23);
  wide.finish(1);
  EXPECT_EQ(wide.push(0, "日本語日本語日"), "日本語日本 |\n");
  EXPECT_EQ(wide.finish(0), "語日       |\n");
}

// Contents with nothing around them, of the user and the assistant alone.
class NoSystemTemplate : public text::ChatTemplate {
 public:
  std::string render_turns(std::span<const text::Message> messages, const text::TemplateInputs&, bool) const override {
    std::string out;
    for (const text::Message& message : messages) {
      if (message.role == "system") throw base::InputError("[chat template] expected another role, got 'system'");
      out += message.content;
    }
    return out;
  }
  std::string description() const override { return "without system messages"; }
};

// Talks to copies of one small model, whose characters are those of `kCharacters`, and keeps what is shown.
class ChatTest : public testing::Test {
 protected:
  static text::CharacterVocabulary vocabulary() {
    text::CharacterVocabulary out{.specials = {"<pad>", "<s>", "<eos>"}};
    for (char c = ' '; c < ' ' + 58; ++c) out.tokens.push_back(std::string(1, c));
    out.eos = "<eos>";
    return out;
  }
  ChatModel model(const std::string& name) {
    generate::ServiceOptions options;
    options.tokenizer = &tokenizer_;
    services_.push_back(std::make_unique<generate::Service>(tiny_.model, options));
    return {name, renderer_, *services_.back(), 160};
  }
  // Gives what is shown while these lines are read.
  std::string talk(std::vector<ChatModel> models, const std::vector<std::string>& lines, uint64_t seed = 1) {
    std::string shown;
    size_t next = 0;
    const ChatPort port{.read_line = [&]() -> std::optional<std::string> {
                          if (next == lines.size()) return std::nullopt;
                          return lines[next++];
                        },
                        .write = [&](std::string_view text) { shown += text; },
                        .interrupted = [&] { return interrupted_; },
                        .width = [] { return 63; }};
    for (ChatModel& model : models) {
      model.sampling.max_tokens = 12;
      model.sampling.ignore_eos = true;
      model.sampling.logit_bias = bias_;
      model.sampling.stop = stop_;
    }
    Chat(std::move(models), {.seed = seed}, port).run();
    return shown;
  }
  nlohmann::json saved(const std::string& path, int line = 0) {
    std::ifstream file(path);
    std::string text;
    for (int i = 0; i <= line; ++i) std::getline(file, text);
    return nlohmann::json::parse(text);
  }

  generate::testing_support::TinyModel tiny_;
  text::CharacterTokenizer tokenizer_{vocabulary()};
  text::Renderer renderer_{tokenizer_, text::make_chat_template(tokenizer_, "plain")};
  std::vector<std::unique_ptr<generate::Service>> services_;
  std::string file_ = testing::TempDir() + "/collimate-chat-test.jsonl";
  bool interrupted_ = false;
  decltype(generate::SamplingParams::logit_bias) bias_;
  std::vector<std::string> stop_;
};

TEST_F(ChatTest, RemembersWhatWasSaid) {
  const std::string shown = talk({model("a")}, {"HELLO", "AND NOW?", "/save " + file_});
  const auto messages = saved(file_)["messages"];
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0], (nlohmann::json{{"role", "user"}, {"content", "HELLO"}}));
  EXPECT_EQ(messages[3]["role"], "assistant");
  const std::string first = messages[1]["content"], second = messages[3]["content"];
  EXPECT_THAT(shown, StartsWith(first + "\n" + second + "\n"));
  // Equal lines give equal answers; without the first turn the second answer is another one.
  EXPECT_THAT(talk({model("a")}, {"HELLO", "AND NOW?"}), StartsWith(first + "\n" + second));
  EXPECT_EQ(talk({model("a")}, {"HELLO", "/clear", "AND NOW?"}).find(second), std::string::npos);
  EXPECT_NE(talk({model("a")}, {"HELLO"}, 2), first + "\n");
  std::filesystem::remove(file_);
}

TEST_F(ChatTest, CommandsChangeTheConversation) {
  talk({model("a")}, {"/system BE KIND", "HELLO", "/system BE SHORT", "/save " + file_});
  EXPECT_EQ(saved(file_)["messages"][0], (nlohmann::json{{"role", "system"}, {"content", "BE SHORT"}}));
  EXPECT_EQ(saved(file_)["messages"].size(), 3U);
  talk({model("a")}, {"/system BE KIND", "HELLO", "/clear", "/save " + file_});
  EXPECT_EQ(saved(file_)["messages"].size(), 1U);
  talk({model("a")}, {"/system BE KIND", "/system", "//HELLO", "/exit", "NEVER READ", "/save " + file_});
  EXPECT_EQ(saved(file_)["messages"].size(), 1U);  // of the conversation before: nothing was saved
  EXPECT_THAT(talk({model("a")}, {"/help"}), HasSubstr("/system TEXT"));
  std::filesystem::remove(file_);
}

TEST_F(ChatTest, MistakesAreShownAndTheConversationGoesOn) {
  const std::string shown =
      talk({model("a")}, {"/dance", "/save", "/save /nowhere/at/all", "\xff", "", std::string(200, 'A'),
                          "lower case has no ids", "HELLO", "/save " + file_});
  EXPECT_THAT(shown, HasSubstr("got /dance"));
  EXPECT_THAT(shown, HasSubstr("expected a file"));
  EXPECT_THAT(shown, HasSubstr("/nowhere/at/all"));
  EXPECT_THAT(shown, HasSubstr("UTF-8"));
  EXPECT_THAT(shown, HasSubstr("at most 159 tokens"));
  EXPECT_EQ(saved(file_)["messages"].size(), 2U);
  std::filesystem::remove(file_);
}

TEST_F(ChatTest, ASystemMessageThatCannotBeTakenLeavesTheOldOne) {
  const std::string shown = talk({model("a")}, {"/system BE KIND", "/system " + std::string(160, 'A'),
                                                "/system lower case has no ids", "HELLO", "/save " + file_});
  EXPECT_THAT(shown,
              StartsWith("[chat] expected a system message of at most 159 tokens, got 160; try a shorter one\n"));
  EXPECT_EQ(saved(file_)["messages"].size(), 3U);
  EXPECT_EQ(saved(file_)["messages"][0]["content"], "BE KIND");
  const text::Renderer bare(tokenizer_, std::make_unique<NoSystemTemplate>());
  const ChatModel plain = model("plain"), other{"other", bare, model("other").service, 160};
  EXPECT_THAT(talk({plain, other}, {"/system BE KIND", "HELLO", "/save " + file_}),
              StartsWith("[chat template] expected another role, got 'system'\n"));
  for (const int line : {0, 1}) EXPECT_EQ(saved(file_, line)["messages"].size(), 2U);
  std::filesystem::remove(file_);
  const auto begin = [&](const ChatModel& one, const std::string& system) { Chat({one}, {.system = system}, {}); };
  EXPECT_THROW(begin(other, "BE KIND"), base::InputError);
  EXPECT_THROW(begin(plain, "\xff"), base::InputError);
  begin(plain, "BE KIND");
  begin(other, "");
}

// The ids are the same, with an escape as the last character, which is always drawn.
TEST_F(ChatTest, WhatATerminalWouldObeyIsShownAndNotDone) {
  text::CharacterVocabulary escapes = vocabulary();
  escapes.tokens.back() = "\x1b";
  const text::CharacterTokenizer tokenizer(escapes);
  const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer, "plain"));
  bias_ = {{60, 100.0}};
  const ChatModel plain = model("a");
  const std::string shown = talk({{"a", renderer, plain.service, 160}}, {"HELLO", "/save " + file_});
  std::string marks;
  for (int i = 0; i < 12; ++i) marks.append("\xEF\xBF\xBD");
  EXPECT_THAT(shown, StartsWith(marks + "\n"));
  EXPECT_EQ(saved(file_)["messages"][1]["content"], std::string(12, '\x1b'));
  std::filesystem::remove(file_);
}

TEST_F(ChatTest, AnInterruptedAnswerEnds) {
  interrupted_ = true;
  EXPECT_EQ(talk({model("a")}, {"HELLO"}), "\n");
}

TEST_F(ChatTest, AStopStringEndsAnAnswerAndIsNoPartOfIt) {
  const std::string whole = talk({model("a")}, {"HELLO"});
  stop_ = {whole.substr(1, 2)};
  const std::string cut = whole.substr(0, whole.find(stop_[0]));
  EXPECT_EQ(talk({model("a")}, {"HELLO", "/save " + file_}), cut + "\nsaved in " + file_ + "\n");
  EXPECT_EQ(saved(file_)["messages"][1]["content"], cut);
  std::filesystem::remove(file_);
}

TEST_F(ChatTest, TwoModelsAnswerSideBySide) {
  const std::string shown = talk({model("left"), model("right")}, {"HELLO", "/save " + file_});
  const std::string left = saved(file_, 0)["messages"][1]["content"], right = saved(file_, 1)["messages"][1]["content"];
  EXPECT_EQ(left, right);  // copies of one model
  EXPECT_EQ(saved(file_, 1)["model"], "right");
  std::istringstream rows(shown);
  std::string row;
  std::getline(rows, row);
  EXPECT_EQ(row, "left" + std::string(26, ' ') + " | right");
  EXPECT_THAT(shown, HasSubstr(" | " + right.substr(0, 3)));
  std::filesystem::remove(file_);
}

}  // namespace
}  // namespace collimate::serve

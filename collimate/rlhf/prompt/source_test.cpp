#include "collimate/rlhf/prompt/source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"
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
      RowSource(text::Dataset::read({{.path = path_}}), renderer, {.kind = kind});
    } catch (const base::InputError& error) {
      const std::string message = error.what(), name = "[" + path_;
      return message.starts_with(name) ? "[F" + message.substr(name.size()) : message;
    }
    return "";
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
            "[F:2] expected an answer in \"completion\" to train on, got an empty text; try leaving the row out");
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

}  // namespace
}  // namespace collimate::rlhf

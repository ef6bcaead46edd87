#include "collimate/recipe/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collimate/text/character_tokenizer.h"

namespace collimate::recipe {
namespace {

// Previews one answer, marked by `said` in a chat template.
DataPreview marked_preview(const std::string& said) {
  const text::CharacterTokenizer tokenizer(
      {.specials = {"$"},
       .tokens = {"a", "b", " ", "\n"},
       .eos = "$",
       .chat_template = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}" + said +
                        "{% endif %}{% endfor %}"});
  const std::string path = testing::TempDir() + "/collimate-preview.jsonl";
  std::ofstream(path) << R"({"prompt": [{"role": "user", "content": "a"}], "completion": "b"})";
  const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer),
                                {.train_on = text::TrainOn::kAssistantTurns});
  const rlhf::RowSource source(text::Dataset::read({{.path = path}}), renderer,
                               {.kind = rlhf::RowKind::kDemonstration});
  std::filesystem::remove(path);
  return preview("data.train", source, rlhf::RowKind::kDemonstration, tokenizer);
}

// As TRL's templates for training mark it: Qwen's with the line's end, Llama's without.
TEST(Preview, ALineMayEndBehindTheTokenThatEndsACompletion) {
  for (const char* said :
       {"{% generation %}{{ m.content }}${% endgeneration %}", "{% generation %}{{ m.content }}$\n{% endgeneration %}",
        "{% generation %}{{ m.content }}${% endgeneration %}\n \n",
        "{% generation %}{{ m.content }}$ \n{% endgeneration %}a"}) {
    const DataPreview shown = marked_preview(said);
    EXPECT_TRUE(shown.unended.empty()) << said;
    EXPECT_EQ(shown.last_ids, std::vector<int32_t>{0}) << said;
  }
  for (const char* said :
       {"{% generation %}{{ m.content }}{% endgeneration %}$", "{% generation %}{{ m.content }}$b{% endgeneration %}",
        "{% generation %}{{ m.content }}{% endgeneration %}$\n", "{% generation %}$\nb\n{% endgeneration %}",
        "{% generation %}$\n{% endgeneration %}a{% generation %} {% endgeneration %}"}) {
    const DataPreview shown = marked_preview(said);
    EXPECT_EQ(shown.unended, std::vector<int64_t>{0}) << said;
    EXPECT_NE(shown.last_ids, std::vector<int32_t>{0}) << said;
  }
}

// Takes a space off the beginning of what it decodes, as tokenizers made by SentencePiece do.
class StrippingTokenizer : public text::CharacterTokenizer {
 public:
  using CharacterTokenizer::CharacterTokenizer;
  std::string decode(std::span<const int32_t> ids, bool skip_special) const override {
    const std::string text = CharacterTokenizer::decode(ids, skip_special);
    return text.starts_with(' ') ? text.substr(1) : text;
  }
};

TEST(Preview, ATextKeepsTheSpaceAtItsBeginning) {
  const StrippingTokenizer tokenizer({.specials = {"$"}, .tokens = {"a", "b", " "}, .eos = "$"});
  const std::string path = testing::TempDir() + "/collimate-preview-space.jsonl";
  std::ofstream(path) << R"({"prompt": "a", "completion": " b"})";
  const text::Renderer renderer(tokenizer, text::make_chat_template(tokenizer));
  const rlhf::RowSource source(text::Dataset::read({{.path = path}}), renderer,
                               {.kind = rlhf::RowKind::kDemonstration});
  std::filesystem::remove(path);
  const DataPreview shown = preview("data.train", source, rlhf::RowKind::kDemonstration, tokenizer);
  ASSERT_EQ(shown.example.at(0).size(), 2U);
  EXPECT_EQ(shown.example[0][0].text, "a");
  EXPECT_EQ(shown.example[0][1].text, " b$");
  EXPECT_THAT(preview_lines(shown, tokenizer), testing::Contains("  trained     3 tokens  \" b$\""));
}

}  // namespace
}  // namespace collimate::recipe

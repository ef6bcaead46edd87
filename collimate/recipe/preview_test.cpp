#include "collimate/recipe/preview.h"

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

}  // namespace
}  // namespace collimate::recipe

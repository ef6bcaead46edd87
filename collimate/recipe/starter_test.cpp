#include "collimate/recipe/starter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/config.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "tests/support/small_task.h"

namespace collimate::recipe {
namespace {

TEST(Starter, OfEveryRecipeIsShortAndReadable) {
  for (const RecipeEntry& entry : recipes()) {
    const std::string text = starter(entry.name, "org/model", "rows.jsonl");
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 25) << text;
    EXPECT_EQ(text.find("{"), text.find("{rule")) << "every place is filled: " << text;
    Config config;
    base::apply(base::parse_config(text, "a.yaml"), config);
    EXPECT_EQ(config.recipe.get(), entry.name);
    EXPECT_EQ(config.model("policy").path.get(), "org/model");
    EXPECT_EQ(config.data.train.get(), "rows.jsonl");
    EXPECT_EQ(config.train.learning_rate.get(), entry.learning_rate);
    EXPECT_FALSE(data_shapes(entry.name).empty());
  }
}

TEST(Starter, FitsTheModelAndTheData) {
  const test::Scratch root("starter");
  test::write_small_task(root.path());
  const std::string model = root / "start", rows = root / "chats.jsonl";
  test::write_text(rows, R"({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]})");
  const auto config_of = [&](const std::string& recipe, const std::string& data) {
    Config config;
    base::apply(base::parse_config(starter(recipe, model, data), "a.yaml"), config);
    return config;
  };
  EXPECT_EQ(config_of("sft", rows).model("policy").chat_template.get(), "chatml");
  EXPECT_EQ(config_of("sft", root / "demonstrations.jsonl").model("policy").chat_template.get(), "auto");
  test::write_text(rows, test::read_text(rows) + "\nno JSON\n");
  EXPECT_EQ(config_of("sft", rows).model("policy").chat_template.get(), "chatml") << "it reads the first row alone";
  EXPECT_EQ(config_of("sft", rows).data.max_tokens.get(), 32);
  const Config drawn = config_of("grpo", root / "problems.jsonl");
  EXPECT_EQ(drawn.rollout.prompt_tokens + drawn.rollout.completion_tokens, 32);
  EXPECT_NE(starter("grpo", model, root / "problems.jsonl").find("- {rule: exact}"), std::string::npos);
  test::write_text(rows, R"({"prompt": "1"})");
  EXPECT_NE(starter("grpo", model, rows).find("- {python: rewards.py:score} # the data has no ground_truth"),
            std::string::npos);
}

}  // namespace
}  // namespace collimate::recipe

#include "collimate/recipe/starter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/config.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "tests/support/base/error_of.h"
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
  EXPECT_EQ(config_of("sft", root / "demonstrations.jsonl").run.save_every.get(), 5) << "40 rows: 20 updates in all";
  EXPECT_EQ(config_of("sft", root / "none.jsonl").run.save_every.get(), 50);
  const Config drawn = config_of("grpo", root / "problems.jsonl");
  EXPECT_EQ(drawn.rollout.prompt_tokens + drawn.rollout.completion_tokens, 32);
  EXPECT_NE(starter("grpo", model, root / "problems.jsonl").find("- {rule: exact}"), std::string::npos);
  test::write_text(rows, R"({"prompt": "1"})");
  EXPECT_NE(starter("grpo", model, rows).find("- {python: reward.py:score}  # the data has no ground_truth"),
            std::string::npos);
}

TEST(Starter, RefusesRowsThatTheRecipeCannotUse) {
  const test::Scratch root("starter");
  const std::string file = root / "rows.jsonl";
  const auto refused = [&](const std::string& recipe, const std::string& row) {
    test::write_text(file, row + "\n");
    const std::string error = base::message_of([&] { starter(recipe, "org/model", file); });
    return error.starts_with("[" + file + ":1] ") ? error.substr(file.size() + 5) : error;
  };
  const std::string pair = R"({"prompt": "1", "chosen": "2", "rejected": "3"})", prompt = R"({"prompt": "1"})";
  const std::string answer = R"({"prompt": "1", "completion": "2"})";
  EXPECT_EQ(
      refused("sft", pair),
      R"(expected a row that recipe sft reads, as {"prompt": "2+2=", "completion": "4"}, got the columns prompt, )"
      "chosen, rejected: a pair of a chosen and a rejected answer, which recipe: dpo or reward reads; try that "
      "recipe, or a file of other rows, or collimate help data");
  for (const std::string recipe : {"dpo", "reward"})
    EXPECT_THAT(refused(recipe, answer), testing::HasSubstr("got the columns prompt, completion: a prompt with a "
                                                            "completion, which recipe: sft reads; try that recipe"));
  EXPECT_THAT(refused("kto", answer), testing::HasSubstr("which recipe: sft reads"));
  EXPECT_THAT(refused("sft", prompt), testing::HasSubstr("a prompt alone, which recipe: grpo or ppo reads"));
  EXPECT_THAT(refused("grpo", R"({"frage": "1", "antwort": "2"})"),
              testing::HasSubstr("got the columns frage, antwort: no known shape; try data.columns: {YOURS: OURS} in "
                                 "what collimate init grpo MODEL writes, or collimate help data"));
  EXPECT_EQ(refused("sft", answer), "") << "it can";
  EXPECT_EQ(refused("dpo", pair), "");
  EXPECT_EQ(refused("ppo", answer), "");
}

// As many passes as change a model, at most ten; more than enough rows are not read.
TEST(Starter, TakesSmallDataMoreThanOnce) {
  const test::Scratch root("starter");
  const std::string file = root / "rows.jsonl";
  const auto of = [&](const std::string& recipe, int rows, const std::string& rest = "") {
    std::string lines;
    const std::string row = recipe == "sft"   ? R"({"prompt": "1", "completion": "2"})"
                            : recipe == "dpo" ? R"({"prompt": "1", "chosen": "2", "rejected": "3"})"
                                              : R"({"prompt": "1"})";
    for (int i = 0; i < rows; ++i) lines += row + "\n";
    test::write_text(file, lines + rest);
    const std::string text = starter(recipe, "org/model", file), key = "  epochs: ";
    return text.substr(text.find(key) + key.size(), text.find('\n', text.find(key)) - text.find(key) - key.size());
  };
  const auto comment = [](int epochs, const std::string& more) {
    return fmt::format("{:<20} # passes over data.train{}", epochs, more);
  };
  EXPECT_EQ(of("sft", 200), comment(4, "; 200 rows are 25 updates"));
  EXPECT_EQ(of("dpo", 200), comment(2, "; 200 pairs are 25 updates"));
  EXPECT_EQ(of("grpo", 8), comment(10, "; 8 rows are 20 updates"));
  EXPECT_EQ(of("sft", 1), comment(10, "; 1 row is 10 updates"));
  EXPECT_EQ(of("sft", 639), comment(1, "; 639 rows are 20 updates"));
  EXPECT_EQ(of("sft", 640, "no JSON\n"), comment(1, ""));
  EXPECT_EQ(of("sft", 1, "no JSON\n"), comment(1, "")) << "check says what is wrong";
}

// Updates are as small as a run of ten passes takes, and none has more examples than the data.
TEST(Starter, TakesSmallUpdatesOfSmallData) {
  const test::Scratch root("starter");
  const auto of = [&](const std::string& recipe, const std::string& row, int rows) {
    std::string lines;
    for (int i = 0; i < rows; ++i) lines += row + "\n";
    test::write_text(root / "rows.jsonl", lines);
    Config config;
    base::apply(base::parse_config(starter(recipe, "org/model", root / "rows.jsonl"), "a.yaml"), config);
    if (recipe == "grpo") {
      EXPECT_EQ(config.train.samples_per_update.get(), 8 * config.rollout.prompts_per_iteration.get());
    }
    return config.train.samples_per_update.get();
  };
  EXPECT_EQ(of("sft", R"({"prompt": "1", "completion": "2"})", 18), 8);
  EXPECT_EQ(of("sft", R"({"prompt": "1", "completion": "2"})", 70), 32);
  EXPECT_EQ(of("dpo", R"({"prompt": "1", "chosen": "2", "rejected": "3"})", 5), 4);
  EXPECT_EQ(of("grpo", R"({"prompt": "1"})", 20), 64);
  EXPECT_EQ(of("grpo", R"({"prompt": "1"})", 3), 8);
}

// The run leaves out what is longer than the config that init writes has it: these rows count for nothing.
TEST(Starter, CountsTheRowsThatTheRunWillUse) {
  const test::Scratch root("starter");
  test::write_small_task(root.path());
  std::string lines;
  for (int i = 0; i < 60; ++i) {
    const std::string answer(i % 3 == 0 ? 40 : 2, '1');  // of 32 positions
    lines += R"({"prompt": "12=", "completion": ")" + answer + "\"}\n";
  }
  test::write_text(root / "rows.jsonl", lines);
  EXPECT_NE(starter("sft", root / "start", root / "rows.jsonl").find("; 40 of 60 rows fit and are 20 updates"),
            std::string::npos);
  EXPECT_NE(starter("sft", "org/model", root / "rows.jsonl").find("; 60 rows are 23 updates"), std::string::npos);
}

}  // namespace
}  // namespace collimate::recipe

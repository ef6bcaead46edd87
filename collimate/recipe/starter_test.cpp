#include "collimate/recipe/starter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/base/config.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"

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

}  // namespace
}  // namespace collimate::recipe

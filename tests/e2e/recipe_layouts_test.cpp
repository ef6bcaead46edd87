#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"

// Recipes on pairs, marked and taught rows in layouts of several devices, against those that have the whole model.
namespace collimate::test {
namespace {

class RecipeLayouts : public NearRuns, public testing::WithParamInterface<std::string> {
 protected:
  std::vector<float> trained_weights(const std::string& name) {
    return exported_weights(directory(name), GetParam() == "reward" ? "score" : "lm");
  }
};

// Rows of unlike lengths in small micro-batches, of which devices have unlike numbers.
TEST_P(RecipeLayouts, SharedWeightsHaveTheBitsOfWholeOnes) {
  for (const char* devices : {"2", "3"}) {
    const std::vector<std::string> sets = {fmt::format("devices={}", devices), "train.micro_batch_tokens=24",
                                           "run.iterations=2"};
    const std::string of = fmt::format("-{}", devices);
    const std::string whole = train("whole" + of, GetParam(), with(sets, {"zero=2"}));
    EXPECT_TRUE(whole == train("shared" + of, GetParam(), with(sets, {"zero=3"}))) << devices;
    EXPECT_EQ(lasting_metrics(directory("whole" + of)), lasting_metrics(directory("shared" + of))) << devices;
  }
}

TEST_P(RecipeLayouts, TokensBlocksAndMatricesAreThoseOfOneDevice) {
  const std::vector<std::string> sets = {"train.micro_batch_tokens=48", "run.iterations=2"};
  train("one", GetParam(), sets);
  const std::vector<float> expected = trained_weights("one");
  for (const char* axis : {"cp=2", "pp=2", "tp=2"}) {
    train(axis, GetParam(), with(sets, {"devices=2", axis}));
    EXPECT_LT(relative_distance(expected, trained_weights(axis)), 1e-5) << axis;
  }
  train("heads", GetParam(), with(sets, {"devices=2", "cp=2", "cp_kind=ulysses"}));
  EXPECT_LT(relative_distance(expected, trained_weights("heads")), 1e-5);
  train("product", GetParam(), with(sets, {"devices=8", "cp=2", "pp=2", "zero=3"}));
  EXPECT_LT(relative_distance(expected, trained_weights("product")), 1e-5);
}

TEST_P(RecipeLayouts, ProcessesGiveTheBitsOfThreads) {
  for (const std::string layout : {"tp=2", "pp=2", "zero=3"}) {
    const std::vector<std::string> sets = {"devices=2", layout, "train.micro_batch_tokens=48", "run.iterations=2"};
    const std::string threads = train("threads " + layout, GetParam(), sets);
    EXPECT_TRUE(threads == train_apart("processes " + layout, GetParam(), sets)) << layout;
    EXPECT_EQ(lasting_metrics(directory("threads " + layout)), lasting_metrics(directory("processes " + layout)));
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, RecipeLayouts, testing::Values("distill", "dpo", "kto", "reward"),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace collimate::test

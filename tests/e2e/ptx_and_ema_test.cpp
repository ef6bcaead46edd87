// A language-model loss beside the policy's, and the moving average of the weights, in runs of recipes.
#include <gmock/gmock.h>

#include "tests/e2e/recipe_runs.h"

namespace collimate::test {
namespace {

class PtxAndEma : public RecipeRuns {
 protected:
  PtxAndEma() : RecipeRuns("ptx-and-ema") {}

  std::vector<std::string> with_texts(const std::string& weight) const {
    return {"data.ptx=" + (scratch_ / "demonstrations.jsonl"), "data.max_tokens=16", "train.ptx_weight=" + weight};
  }
};

TEST_F(PtxAndEma, TheLossIsThePolicysAndTheWeightedMeanOfTexts) {
  for (const char* recipe : {"ppo", "grpo"}) {
    const Metrics metrics = train(recipe, with_texts("3"));
    for (const nlohmann::json& line : metrics)
      EXPECT_NEAR(number(line, "actor/loss"), number(line, "actor/pg_loss") + 3 * number(line, "actor/ptx_loss"), 1e-4)
          << recipe << line.dump();
    const Metrics without = train(recipe);
    EXPECT_FALSE(without.front().contains("actor/ptx_loss"));
    EXPECT_LT(number(without.front(), "train/tokens"), number(metrics.front(), "train/tokens"));
  }
}

TEST_F(PtxAndEma, TextsAreLearned) {
  const Metrics heavy = train("ppo", with_texts("10")), none = train("ppo", with_texts("0"));
  EXPECT_EQ(number(heavy.front(), "actor/ptx_loss"), number(none.front(), "actor/ptx_loss")) << "before any update";
  EXPECT_LT(number(heavy.back(), "actor/ptx_loss"), number(heavy.front(), "actor/ptx_loss"));
  EXPECT_LT(number(heavy.back(), "actor/ptx_loss"), number(none.back(), "actor/ptx_loss"));
}

// Two devices share the samples, and with them the texts.
TEST_F(PtxAndEma, IsTheSameOnSeveralDevices) {
  const Metrics one = train("ppo", with_texts("3"));
  std::vector<std::string> sets = with_texts("3");
  sets.insert(sets.end(), {"devices=2", "train.ema=0.9"});
  const Metrics two = train("ppo", sets);
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_NEAR(number(two[i], "actor/ptx_loss"), number(one[i], "actor/ptx_loss"), 1e-3) << i;
  EXPECT_NE(read_text(output_ + "/model-ema/model.safetensors"), model_bytes(output_));
}

// Devices that share the weights (stage 3 of ZeRO) share their average, with the bits of whole ones.
TEST_F(PtxAndEma, SharedWeightsHaveTheSameAverage) {
  const auto models = [&](const char* recipe, std::vector<std::string> sets, const std::string& zero) {
    sets.insert(sets.end(), {"devices=2", "train.ema=0.9", "zero=" + zero});
    train(recipe, sets);
    return model_bytes(output_) + read_text(output_ + "/model-ema/model.safetensors");
  };
  EXPECT_TRUE(models("sft", {}, "1") == models("sft", {}, "3"));
  EXPECT_TRUE(models("ppo", with_texts("3"), "2") == models("ppo", with_texts("3"), "3"));
}

TEST_F(PtxAndEma, AnAverageIsAModelOfItsOwnAndChangesNoOther) {
  for (const char* recipe : {"sft", "reward", "dpo"}) {
    const Metrics with = train(recipe, {"train.ema=0.9"});
    const std::string averaged = output_;
    const Metrics without = train(recipe);
    EXPECT_EQ(model_bytes(averaged), model_bytes(output_)) << recipe;
    EXPECT_FALSE(fs::exists(output_ + "/model-ema")) << recipe;
    EXPECT_NE(read_text(averaged + "/model-ema/model.safetensors"), model_bytes(averaged)) << recipe;
    for (const char* file : {"config.json", "tokenizer.json"})
      EXPECT_EQ(read_text(averaged + "/model-ema/" + file), read_text(averaged + "/model/" + file)) << recipe;
  }
  train("sft", {"train.ema=0.9", "train.learning_rate=0"});
  EXPECT_EQ(read_text(output_ + "/model-ema/model.safetensors"), model_bytes(output_)) << "weights that stay";
}

// With and without an average the plan and what was used differ by the master weights.
TEST_F(PtxAndEma, TheMemoryPlanCountsTheAverage) {
  const auto planned = [&](const std::string& ema) {
    train("sft", {"train.ema=" + ema});
    const auto memory = nlohmann::json::parse(read_text(output_ + "/summary.json")).at("memory");
    EXPECT_LE(memory.at("peak_bytes").get<int64_t>(), memory.at("planned_bytes").get<int64_t>());
    return memory.at("planned_bytes").get<int64_t>();
  };
  EXPECT_GT(planned("0.9") - planned("0"), 40000) << "4 bytes for each of the model's parameters";
}

}  // namespace
}  // namespace collimate::test

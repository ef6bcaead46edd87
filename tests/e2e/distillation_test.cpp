// Runs of recipe distill: on answers of the data, on answers that the student draws, and on both.
#include <gmock/gmock.h>

#include "tests/e2e/near_runs.h"
#include "tests/e2e/recipe_runs.h"

namespace collimate::test {
namespace {

class Distillation : public RecipeRuns {
 protected:
  Distillation() : RecipeRuns("distillation") {}

  std::vector<std::string> held_out(std::vector<std::string> more = {}) const {
    more.push_back("data.eval=" + (scratch_ / "demonstrations.jsonl"));
    return more;
  }
};

const std::vector<std::string> kMixed = {"algorithm.on_policy_share=0.5", "rollout.completion_tokens=4",
                                         "algorithm.loss_type=jsd", "data.max_tokens=16"};

TEST_F(Distillation, TheStudentComesCloserToItsTeacher) {
  for (const char* loss : {"forward_kl", "reverse_kl", "jsd"}) {
    const Metrics metrics =
        train("distill", held_out({fmt::format("algorithm.loss_type={}", loss), "train.learning_rate=3e-2",
                                   "run.iterations=20", "run.evaluate_every=20"}));
    EXPECT_LT(number(metrics.back(), "val/divergence"), 0.8 * number(metrics.front(), "val/divergence")) << loss;
    EXPECT_LT(number(metrics.back(), "actor/loss"), number(metrics.at(1), "actor/loss")) << loss;
    EXPECT_NEAR(std::log(number(metrics.back(), "val/perplexity")), number(metrics.back(), "val/loss"), 1e-6);
  }
}

// With all 13 tokens the list has no rest; fewer outcomes are never further apart, and training reports of the first
// update what an evaluation of its rows does.
TEST_F(Distillation, FewerTokensGiveALowerBound) {
  double last = 0;
  for (const char* tokens : {"1", "4", "12", "13", "64"}) {
    const Metrics metrics =
        train("distill", held_out({fmt::format("algorithm.teacher_tokens={}", tokens), "run.iterations=1",
                                   "train.samples_per_update=40", "run.evaluate_every=1"}));
    const double divergence = number(metrics.front(), "val/divergence");
    EXPECT_GE(divergence, last - 1e-6) << tokens;
    EXPECT_NEAR(number(metrics.back(), "actor/divergence"), divergence, 1e-5) << tokens;
    EXPECT_EQ(number(metrics.back(), "actor/teacher_rest") < 1e-30, std::stoi(tokens) >= 13) << tokens;
    last = divergence;
  }
  EXPECT_GT(last, 0.01);
}

TEST_F(Distillation, TheLossIsTheWeightedSumOfDivergenceAndDataAtTheirTemperatures) {
  const Metrics metrics = train("distill", {"algorithm.data_loss_weight=0.25", "algorithm.distillation_temperature=2"});
  for (const nlohmann::json& line : metrics)
    EXPECT_NEAR(number(line, "actor/loss"),
                0.75 * 4 * number(line, "actor/divergence") + 0.25 * number(line, "sft/nll"), 1e-5);
  EXPECT_NEAR(number(metrics.front(), "sft/nll"), number(train("sft").front(), "sft/nll"), 1e-5)
      << "the data's loss has no temperature";
}

TEST_F(Distillation, AShareOfTheAnswersIsDrawn) {
  const auto drawn = [&](const std::string& share) {
    std::vector<std::string> sets = kMixed;
    sets[0] = "algorithm.on_policy_share=" + share;
    double tokens = 0;
    for (const nlohmann::json& line : train("distill", sets)) tokens += number(line, "rollout/decoded_tokens");
    return tokens;
  };
  const double half = drawn("0.5"), all = drawn("1");
  EXPECT_GT(half, 0.2 * all);
  EXPECT_LT(half, 0.8 * all);
  EXPECT_EQ(drawn("1e-9"), 0) << "every row keeps its answer";
  const std::string kept = model_bytes(output_);
  train("distill", {"algorithm.loss_type=jsd", "data.max_tokens=16"});
  EXPECT_TRUE(kept == model_bytes(output_)) << "and trains the bits of a run that has no generator";
}

TEST_F(Distillation, TheMemoryPlanCountsTheLists) {
  replace_in(scratch_ / "start/config.json", "\"vocab_size\": 13", "\"vocab_size\": 2000");
  const auto planned = [&](const std::string& tokens, std::vector<std::string> more) {
    more.push_back("algorithm.teacher_tokens=" + tokens);
    train("distill", held_out(std::move(more)));
    taken_bytes(output_, "tensors");
    const auto memory = nlohmann::json::parse(read_text(output_ + "/summary.json")).at("memory");
    EXPECT_LE(memory.at("peak_bytes").get<int64_t>(), memory.at("planned_bytes").get<int64_t>());
    return memory.at("planned_bytes").get<double>();
  };
  const double list = 8.0 * 1500 * 8 * 4;  // of 8 rows, 4 trained tokens each
  for (const char* temperature : {"1", "2"}) {
    const std::vector<std::string> sets = {fmt::format("algorithm.distillation_temperature={}", temperature)};
    EXPECT_GT(planned("1501", sets), planned("1", sets) + list);
  }
  planned("1501", kMixed);
}

TEST_F(Distillation, GoesOnWithTheBitsOfARunThatWasNotStopped) {
  train("distill", kMixed);
  const std::string whole = model_bytes(output_);
  const std::string text = small_config("distill", scratch_.path()), output = scratch_ / "resumed";
  train_until_stopped(text, output, kMixed);
  train_text(text, output, kMixed);
  EXPECT_TRUE(whole == model_bytes(output));
}

TEST_F(Distillation, UnfitTeachersAndOptionsAreNamed) {
  const auto error_of = [&](const std::vector<std::string>& sets, const std::string& text = "") {
    return base::message_of([&] {
      train_text(text.empty() ? small_config("distill", scratch_.path()) : text, scratch_ / "refused", sets);
    });
  };
  std::string alone = small_config("sft", scratch_.path());
  alone.replace(0, alone.find('\n'), "recipe: distill");
  EXPECT_EQ(error_of({}, alone),
            "[models.teacher] expected the model whose distributions are learned, got none; try models: {teacher: "
            "{path: DIRECTORY}}");
  EXPECT_THAT(error_of({"algorithm.on_policy_share=0.5", "algorithm.data_loss_weight=0.1"}),
              testing::HasSubstr("[algorithm.data_loss_weight] expected 0 with on_policy_share"));
  EXPECT_THAT(error_of({"algorithm.on_policy_share=0.5", "rollout.samples_per_prompt=4"}),
              testing::HasSubstr("[rollout.samples_per_prompt]"));
  EXPECT_THAT(error_of({"rollout.temperature=0.5"}), testing::HasSubstr("which draws no samples"));
  fs::copy(scratch_ / "start", scratch_ / "wide", fs::copy_options::recursive);
  replace_in(scratch_ / "wide/config.json", "\"vocab_size\": 13", "\"vocab_size\": 20");
  EXPECT_THAT(error_of({"models.teacher.path=" + (scratch_ / "wide")}),
              testing::HasSubstr("expected a teacher of the policy's vocabulary of 13 tokens, got 20"));
  fs::copy(scratch_ / "start", scratch_ / "other", fs::copy_options::recursive);
  text::CharacterVocabulary letters{.specials = {"<pad>", "<eos>"}, .eos = "<eos>", .pad = "<pad>"};
  for (char c = 'a'; c <= 'k'; ++c) letters.tokens.emplace_back(1, c);
  text::CharacterTokenizer(letters).save(scratch_ / "other");
  EXPECT_THAT(error_of({"models.teacher.path=" + (scratch_ / "other")}),
              testing::HasSubstr("expected the tokenizer of the policy"));
}

class DistillationLayouts : public NearRuns {};

TEST_F(DistillationLayouts, DrawnAndGivenAnswersTrainAsOnOneDevice) {
  train("one", "distill", kMixed);
  const std::vector<float> expected = exported_weights(directory("one"));
  for (const char* layout : {"tp=2", "pp=2", "zero=3", "cp=2"}) {
    train(layout, "distill", with(kMixed, {"devices=2", layout}));
    EXPECT_LT(relative_distance(expected, exported_weights(directory(layout))), 1e-5) << layout;
  }
}

}  // namespace
}  // namespace collimate::test

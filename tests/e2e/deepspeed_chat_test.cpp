// DeepSpeed-Chat's programming interface: a training loop in a program, with the numbers of recipe ppo.
#include "collimate/recipe/deepspeed_chat.h"

#include <gmock/gmock.h>

#include "tests/e2e/recipe_runs.h"
#include "tests/support/base/error_of.h"

namespace collimate::test {
namespace {

class DeepSpeedChat : public RecipeRuns {
 protected:
  DeepSpeedChat() : RecipeRuns("deepspeed-chat") {}

  // Trains a start and a reward model, from which the loop begins.
  void SetUp() override {
    RecipeRuns::SetUp();
    train("sft");
    actor_ = output_ + "/model";
    train("reward");
    critic_ = output_ + "/model";
  }
  nlohmann::json options() const {
    return {
        {"data", {{"train", scratch_ / "problems.jsonl"}}},
        {"run", {{"seed", 7}, {"threads", 1}}},
        {"train", {{"warmup_updates", 0}}},
        {"rollout",
         {{"prompts_per_iteration", 4}, {"samples_per_prompt", 4}, {"prompt_tokens", 8}, {"completion_tokens", 6}}}};
  }
  recipe::DeepSpeedRLHFEngine engine(const nlohmann::json& more = nlohmann::json::object()) const {
    nlohmann::json asked = options();
    asked.merge_patch(more);
    return {actor_, critic_, *text::load_tokenizer(actor_), 3, asked};
  }
  // The config of the same run.
  std::string config(const nlohmann::json& more = nlohmann::json::object()) const {
    nlohmann::json values = options();
    values.merge_patch({{"recipe", "ppo"}, {"preset", "deepspeed-chat-ppo"}, {"run", {{"iterations", 3}}}});
    values["models"] = {
        {"policy", {{"path", actor_}}}, {"value", {{"path", critic_}}}, {"reward", {{"path", critic_}}}};
    values.merge_patch(more);
    return values.dump();
  }

  std::string actor_, critic_;
};

// Losses and weights of the loop are those of `collimate train`, bit for bit.
TEST_F(DeepSpeedChat, ALoopInAProgramHasARunsBits) {
  recipe::DeepSpeedRLHFEngine models = engine();
  recipe::DeepSpeedPPOTrainer trainer(models);
  std::vector<recipe::PPOLosses> losses;
  for (int64_t i = 0; i < models.total_iterations(); ++i)
    losses.push_back(trainer.train_rlhf(trainer.generate_experience(models.prompts(i))));
  EXPECT_EQ(trainer.metrics().at("mismatch/logprob_abs_max"), 0.0);
  models.save(scratch_ / "by-hand");

  train_text(config(), scratch_ / "run");
  const Metrics run = metrics_of(scratch_ / "run");
  ASSERT_EQ(run.size(), losses.size());
  for (size_t i = 0; i < run.size(); ++i) {
    EXPECT_EQ(number(run[i], "actor/pg_loss"), losses[i].actor) << i;
    EXPECT_EQ(number(run[i], "critic/vf_loss"), losses[i].critic) << i;
  }
  EXPECT_TRUE(read_text(scratch_ / "by-hand/actor/model.safetensors") == model_bytes(scratch_ / "run"));
  EXPECT_FALSE(read_text(scratch_ / "by-hand/critic/model.safetensors").empty());
}

TEST_F(DeepSpeedChat, TextsAreTrainedInTheSameSteps) {
  const nlohmann::json texts = {{"data", {{"ptx", scratch_ / "demonstrations.jsonl"}, {"max_tokens", 16}}}};
  recipe::DeepSpeedRLHFEngine models = engine(texts);
  recipe::DeepSpeedPPOTrainer trainer(models);
  const Batch experience = trainer.generate_experience(models.prompts(0));
  trainer.train_rlhf(experience);
  train_text(config(texts), scratch_ / "run");
  EXPECT_EQ(trainer.train_unsupervised(experience, 27.8), number(metrics_of(scratch_ / "run")[0], "actor/ptx_loss"));
  EXPECT_THAT(base::message_of([&] { trainer.train_unsupervised(experience, 1); }),
              testing::HasSubstr("expected train.ptx_weight, 27.8"));
}

// A step that a program changes: here the experience that is trained on.
class Halved : public recipe::DeepSpeedPPOTrainer {
 public:
  using DeepSpeedPPOTrainer::DeepSpeedPPOTrainer;
  Batch generate_experience(const Batch& prompts) override {
    const Batch all = DeepSpeedPPOTrainer::generate_experience(prompts);
    return all.slice(0, all.rows() / 2);
  }
};

TEST_F(DeepSpeedChat, AStepMayBeOnesOwn) {
  recipe::DeepSpeedRLHFEngine models = engine();
  Halved trainer(models);
  const Batch experience = trainer.generate_experience(models.prompts(0));
  EXPECT_EQ(experience.rows(), 8);
  EXPECT_TRUE(std::isfinite(trainer.train_rlhf(experience).actor));
}

TEST_F(DeepSpeedChat, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(base::message_of([&] { engine({{"devices", 2}}); }), testing::HasSubstr("[devices] expected 1"));
  EXPECT_EQ(base::message_of([&] {
              engine({{"placement", "separation"}});
            }),
            "[placement] expected flattening where a program has the loop itself, got \"separation\"; try collimate "
            "train, which has the loop");
  EXPECT_THAT(base::message_of([&] { engine({{"rollout", {{"promts", 3}}}}); }), testing::HasSubstr("promts"));
  EXPECT_THAT(base::message_of([&] {
                engine({{"run", {{"memory_budget", 1}}}});
              }),
              testing::HasSubstr("memory_budget"));
  recipe::DeepSpeedRLHFEngine models = engine();
  recipe::DeepSpeedPPOTrainer trainer(models);
  const Batch experience = trainer.generate_experience(models.prompts(0));
  EXPECT_THAT(base::message_of([&] { trainer.train_unsupervised(experience, 27.8); }),
              testing::HasSubstr("expected rows with texts beside them"));
  const text::CharacterTokenizer other({.specials = {"<eos>"}, .tokens = {"x"}, .eos = "<eos>"});
  EXPECT_THAT(base::message_of([&] { recipe::DeepSpeedRLHFEngine(actor_, critic_, other, 3, options()); }),
              testing::HasSubstr("[tokenizer, token 0]"));
}

}  // namespace
}  // namespace collimate::test

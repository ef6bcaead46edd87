#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/flow/by_hand.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The programming interface of DeepSpeed-Chat (Yao et al. 2023, DeepSpeedExamples' dschat/rlhf) over recipe ppo: a
// program has the training loop, on one device and in its own thread. The numbers are those of `collimate train` with
// the same config.
//
//   DeepSpeedRLHFEngine engine(actor, critic, tokenizer, total_iterations, options);
//   DeepSpeedPPOTrainer trainer(engine);
//   for (int64_t i = 0; i < engine.total_iterations(); ++i) {
//     const Batch experience = trainer.generate_experience(engine.prompts(i));
//     const auto [actor_loss, critic_loss] = trainer.train_rlhf(experience);
//   }
class DeepSpeedRLHFEngine {
 public:
  // Loads four models: the actor and its frozen reference from one directory, the critic and the frozen reward model
  // from another, that of a trained reward model. `options`: keys of a config (collimate help ppo), which win over
  // preset deepspeed-chat-ppo; data.train has the prompts; with `reward` rules judge and no model does. InputError for
  // what `collimate train` refuses, and for a tokenizer that is not the actor's.
  DeepSpeedRLHFEngine(const std::string& actor, const std::string& critic, const text::Tokenizer& tokenizer,
                      int64_t total_iterations, const nlohmann::json& options);

  int64_t total_iterations() const { return config_.run.iterations; }
  // The rows of an iteration, from 0, whose calls begin with this: each prompt as often as rollout.samples_per_prompt
  // says, with a row of data.ptx beside each where there is that.
  Batch prompts(int64_t iteration);
  const Config& config() const { return config_; }
  flow::ByHand& models() { return *models_; }
  // Writes the actor and the critic as Hugging Face directories DIRECTORY/actor and DIRECTORY/critic.
  void save(const std::string& directory);

 private:
  Config config_;
  const flow::Registry registry_;
  Plan plan_;
  RunData data_;
  std::unique_ptr<flow::ByHand> models_;
};

struct PPOLosses {
  double actor = 0, critic = 0;  // means over the updates' tokens
};

// Derive from it to change a step.
class DeepSpeedPPOTrainer {
 public:
  explicit DeepSpeedPPOTrainer(DeepSpeedRLHFEngine& engine) : engine_(engine) {}
  virtual ~DeepSpeedPPOTrainer() = default;

  // Draws answers to the prompts and scores them: log-probs of actor and reference, values, rewards, advantages and
  // returns are columns of the rows that come back.
  virtual Batch generate_experience(const Batch& prompts);
  // Updates actor and critic by rows of generate_experience, in updates of train.samples_per_update.
  virtual PPOLosses train_rlhf(const Batch& experience);
  // The loss of the texts beside the samples (data.ptx), which train_rlhf trained in the same optimizer steps, as
  // DeepSpeed-Chat's doubled accumulation makes one step of both. InputError without texts, and for a coefficient that
  // is not train.ptx_weight.
  virtual double train_unsupervised(const Batch& experience, double coefficient);

  // Returns what the models have measured in the last call of train_rlhf, by name: "actor/pg_loss", "critic/vf_loss", …
  const nlohmann::ordered_json& metrics() const { return metrics_; }

 protected:
  DeepSpeedRLHFEngine& engine() { return engine_; }

 private:
  double measured_as(const std::string& name) const;

  DeepSpeedRLHFEngine& engine_;
  nlohmann::ordered_json metrics_ = nlohmann::ordered_json::object();
};

}  // namespace collimate::recipe

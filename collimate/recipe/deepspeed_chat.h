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

// Offers the programming interface of DeepSpeed-Chat (Yao et al. 2023, DeepSpeedExamples' dschat/rlhf) over recipe ppo.
// The program itself has the training loop, on one device and in its own thread. The numbers are those of `collimate
// train` with the same config.
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
  // from another, which holds a trained reward model. `options` has keys of a config (collimate help ppo), which win
  // over preset deepspeed-chat-ppo. data.train has the prompts; with `reward` rules judge in the place of the reward
  // model. Throws InputError for what `collimate train` refuses, for run.epochs or several devices, and for a tokenizer
  // that is not the actor's.
  DeepSpeedRLHFEngine(const std::string& actor, const std::string& critic, const text::Tokenizer& tokenizer,
                      int64_t total_iterations, const nlohmann::json& options);

  int64_t total_iterations() const { return config_.run.iterations; }
  // Begins an iteration, counted from 0, and returns its rows: each prompt as often as rollout.samples_per_prompt says,
  // with a row of data.ptx beside each where that is set. An iteration's calls begin with this one.
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

// Does the two steps of each iteration. Derive from this class to change a step.
class DeepSpeedPPOTrainer {
 public:
  explicit DeepSpeedPPOTrainer(DeepSpeedRLHFEngine& engine) : engine_(engine) {}
  virtual ~DeepSpeedPPOTrainer() = default;

  // Draws answers to the prompts and scores them. The rows that it returns have log-probs of actor and reference,
  // values, rewards, advantages and returns as columns.
  virtual Batch generate_experience(const Batch& prompts);
  // Updates actor and critic by rows of generate_experience, with train.samples_per_update rows in each update.
  virtual PPOLosses train_rlhf(const Batch& experience);
  // Returns the loss of the texts beside the samples (data.ptx). train_rlhf has already trained them, in the same
  // optimizer steps as the samples, as DeepSpeed-Chat's doubled accumulation makes one step of both. Throws InputError
  // without texts, and for a coefficient that is not train.ptx_weight.
  virtual double train_unsupervised(const Batch& experience, double coefficient);

  // Returns what the models have measured in the last call of train_rlhf, by name: "actor/pg_loss", "critic/vf_loss".
  const nlohmann::ordered_json& metrics() const { return metrics_; }

 protected:
  DeepSpeedRLHFEngine& engine() { return engine_; }

 private:
  double measured_as(const std::string& name) const;

  DeepSpeedRLHFEngine& engine_;
  nlohmann::ordered_json metrics_ = nlohmann::ordered_json::object();
};

}  // namespace collimate::recipe

#include "collimate/recipe/preset.h"

#include <fmt/format.h>

#include "collimate/base/config.h"
#include "collimate/base/named.h"

namespace collimate::recipe {
namespace {

// Presets of one program share such lines.
constexpr const char* kTrlTrain = R"(train:
  learning_rate: 1.0e-6
  lr_schedule: linear
  adam_beta1: 0.9
  adam_beta2: 0.999
  adam_epsilon: 1.0e-8
  weight_decay: 0.0
  max_grad_norm: 1.0
  ppo_epochs: 1
)";

constexpr const char* kVerlLoss = R"(algorithm:
  loss_type: ppo
  epsilon: 0.2
  delta: 3.0
  log_ratio_min: -20
  log_ratio_max: 20
  beta: 0.0
  kl_loss_estimator: k3
  kl_loss_log_ratio_limit: 20
  kl_loss_limit: 10
  entropy_coefficient: 0.0
)";

constexpr const char* kVerlTrain = R"(  adam_beta1: 0.9
  adam_beta2: 0.999
  weight_decay: 0.01
  max_grad_norm: 1.0
  ppo_epochs: 1
)";

constexpr const char* kTrlGrpo = R"(algorithm:
  loss_type: dapo
  token_normalizer: iteration
  advantage: group
  scale_rewards: group
  advantage_epsilon: 1.0e-4
  importance_sampling_level: token
  epsilon: 0.2
  beta: 0.0
  use_bias_correction_kl: true
rollout: {samples_per_prompt: 8, completion_tokens: 512, temperature: 1.0, top_p: 1.0}
)";

constexpr const char* kTrlRloo = R"(algorithm:
  loss_type: grpo
  importance_sampling_level: sequence_sum
  epsilon: 0.2
  beta: 0.0
  advantage: rloo
  kl_coefficient: 0.05
  kl_estimator: k1
rollout: {samples_per_prompt: 2, completion_tokens: 512, temperature: 1.0, top_p: 1.0}
)";

constexpr const char* kVerlGrpo = R"(  advantage: group
  scale_rewards: group
  advantage_epsilon: 1.0e-6
  lone_samples: reward
  kl_coefficient: 0.0
rollout: {prompt_tokens: 512, completion_tokens: 512, temperature: 1.0, top_p: 1.0}
train:
  learning_rate: 1.0e-6
)";

constexpr const char* kVerlPpo = R"(  advantage: gae
  gamma: 1.0
  lambda: 1.0
  kl_coefficient: 0.0
  kl_estimator: k1
  value_clip: 0.5
  whiten_rewards: false
  whiten_advantages: true
  whiten_variance: unbiased
rollout: {samples_per_prompt: 1, prompt_tokens: 512, completion_tokens: 512, temperature: 1.0, top_p: 1.0}
train:
  learning_rate: 1.0e-6
  value_learning_rate: 1.0e-5
)";

constexpr const char* kOpenRlhfPpo = R"(algorithm:
  loss_type: ppo
  epsilon: 0.2
  log_ratio_min: -20
  log_ratio_max: 20
  beta: 0.0
  advantage: gae
  gamma: 1.0
  lambda: 1.0
  reward_clip: 10
  kl_coefficient: 0.01
  kl_estimator: k1
  value_clip: 0.5
  whiten_advantages: true
  whiten_variance: biased
train:
  learning_rate: 1.0e-6
  value_learning_rate: 9.0e-6
  adam_beta1: 0.9
  adam_beta2: 0.95
  max_grad_norm: 1.0
)";

constexpr const char* kDeepSpeedChatPpo = R"(algorithm:
  loss_type: ppo
  epsilon: 0.2
  beta: 0.0
  advantage: gae
  gamma: 1.0
  lambda: 0.95
  reward_clip: 5
  kl_coefficient: 0.1
  kl_estimator: k1
  value_clip: 0.2
  whiten_rewards: false
  whiten_advantages: false
rollout: {samples_per_prompt: 1, prompt_tokens: 256, completion_tokens: 256}
train:
  learning_rate: 9.65e-6
  value_learning_rate: 5.0e-6
  lr_schedule: cosine
  warmup_updates: 100
  adam_beta1: 0.9
  adam_beta2: 0.95
  weight_decay: 0.0
  max_grad_norm: 1.0
  ppo_epochs: 1
)";

constexpr const char* kDeepSpeedChatReward = R"(algorithm: {loss_type: divergence_region}
train:
  learning_rate: 5.0e-5
  lr_schedule: cosine
  warmup_updates: 0
  adam_beta1: 0.9
  adam_beta2: 0.95
  weight_decay: 0.0
  max_grad_norm: 1.0
)";

constexpr const char* kChatLearnGrpo = R"(algorithm:
  loss_type: ppo
  epsilon: 0.2
  log_ratio_max: 10
  token_loss_limit: 3
  beta: 0.0
  entropy_coefficient: 0.0
  advantage: group
  scale_rewards: group
  advantage_epsilon: 1.0e-5
)";

constexpr const char* kDapo = R"(algorithm:
  loss_type: dapo
  epsilon: 0.2
  epsilon_high: 0.28
  beta: 0.0
  advantage: group
  scale_rewards: group
  advantage_epsilon: 1.0e-6
  overlong_penalty: 1.0
rollout: {samples_per_prompt: 16, replace_equal_groups: true, temperature: 1.0, top_p: 1.0}
train: {learning_rate: 1.0e-6, weight_decay: 0.1, max_grad_norm: 1.0}
)";

std::string texts(std::initializer_list<const char*> parts) {
  std::string all;
  for (const char* part : parts) all += part;
  return all;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list = {
      {"trl-grpo", "TRL 1.16, defaults of GRPOConfig", "grpo", texts({kTrlGrpo, kTrlTrain}), ""},
      {"trl-rloo", "TRL 1.16, defaults of RLOOConfig", "grpo", texts({kTrlRloo, kTrlTrain}), ""},
      {"verl-grpo", "verl 0.10, defaults of its PPO trainer with adv_estimator grpo", "grpo",
       texts({kVerlLoss, kVerlGrpo, kVerlTrain}),
       "rollout.samples_per_prompt is verl's rollout.n, whose default 1 says nothing to grpo"},
      {"verl-ppo", "verl 0.10, defaults of its PPO trainer", "ppo", texts({kVerlLoss, kVerlPpo, kVerlTrain}), ""},
      {"openrlhf-ppo", "OpenRLHF 0.11", "ppo", kOpenRlhfPpo, ""},
      {"deepspeed-chat-ppo", "DeepSpeed-Chat, step 3 of DeepSpeedExamples", "ppo", kDeepSpeedChatPpo,
       "the reward is on a completion's last token; DeepSpeed-Chat has it on the place that predicts the first "
       "padding"},
      {"deepspeed-chat-reward", "DeepSpeed-Chat, step 2 of DeepSpeedExamples", "reward", kDeepSpeedChatReward,
       "tokens of padding read each other; DeepSpeed-Chat's read the answer alone"},
      {"chatlearn-grpo", "ChatLearn, main of 2025 with FSDP", "grpo", kChatLearnGrpo, ""},
      {"dapo", "Yu et al. 2025, DAPO", "grpo", kDapo,
       "set algorithm.overlong_buffer_tokens, a fifth of rollout.completion_tokens in the paper"}};
  return list;
}

std::vector<std::string> preset_names() { return base::names_of(presets()); }

base::ConfigNode preset_values(const Preset& preset) {
  return base::parse_config(fmt::format("recipe: {}\n{}", preset.recipe, preset.yaml), "preset " + preset.name).root;
}

std::string presets_text() {
  std::string text =
      "The key `preset` takes the constants of another program, of the version that is named; keys of the config have "
      "the last word\n";
  for (const Preset& preset : presets()) {
    text += fmt::format("\npreset: {}  # recipe {}: {}\n{}", preset.name, preset.recipe, preset.source, preset.yaml);
    if (!preset.notes.empty()) text += fmt::format("# {}\n", preset.notes);
  }
  return text;
}

}  // namespace collimate::recipe

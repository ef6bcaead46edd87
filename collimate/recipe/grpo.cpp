#include "collimate/recipe/evaluate.h"
#include "collimate/recipe/plan.h"

namespace collimate::recipe {

// Group relative policy optimisation (Shao et al. 2024): samples of a prompt are compared with each other, no value
// model.
Plan grpo(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy = page.generator("policy", {.weights = "policy", .trained = true});
  const auto trainer = page.trainer("policy_trainer", {.weights = "policy", .trained = true, .loss = "policy"});
  const auto reward = page.rewards("reward", config.reward);
  const auto advantages = page.host("group_advantages", {{"scale", config.algorithm.scale_rewards.get()},
                                                         {"epsilon", config.algorithm.advantage_epsilon.get()},
                                                         {"shuffle_rewards", config.algorithm.shuffle_rewards.get()}});
  const bool kl = config.algorithm.beta > 0;
  std::optional<graph::ModelHandle> reference;
  if (kl) reference = page.scorer("reference", {.of = "reference", .weights = "reference"});

  Plan plan;
  plan.graph = graph::trace(
      [&](graph::Value prompts) {
        graph::Value samples = policy("generate", prompts);
        graph::Value scored = reward("score", samples);
        if (kl) scored = merge(scored, (*reference)("log_probs", samples));
        trainer.train(advantages(scored), page.updates());
        link(trainer, policy);
      },
      {prompt_input()}, "grpo");
  plan.rows_per_iteration = rollout_rows(config);
  plan.group_size = config.rollout.samples_per_prompt;
  plan.samples_node = "group_advantages";
  plan.trained = "policy_trainer";
  plan.evaluation = rollout_evaluation(page, policy);
  plan.modules = page.modules();
  return plan;
}

}  // namespace collimate::recipe

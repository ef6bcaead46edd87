#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {
namespace {

const std::map<std::string, std::string>& ppo_phases() {
  static const std::map<std::string, std::string> kPhases = {{"policy.generate", "gen"},
                                                             {"policy.old_log_probs", "old_log_prob"},
                                                             {"reference.log_probs", "ref"},
                                                             {"value.values", "values"},
                                                             {"reward.score", "reward"},
                                                             {"advantages", "adv"},
                                                             {"policy_trainer.train", "update_actor"},
                                                             {"value.train", "update_critic"}};
  return kPhases;
}

}  // namespace

// Plans proximal policy optimisation with four models (Ouyang et al. 2022): policy, reference, value, and a reward
// model or rules.
Plan ppo(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy = page.generator("policy", {.weights = "policy", .trained = true});
  const auto trainer =
      page.trainer("policy_trainer", {.weights = "policy", .trained = true, .rows = "rollouts", .loss = "ppo"});
  const auto reference = page.scorer("reference", {.of = "reference", .weights = "reference"});
  const auto value = page.trainer(
      "value",
      {.of = "value", .weights = "value", .trained = true, .head = "value", .rows = "values", .loss = "value"});
  const bool rules = !config.reward->is_null();
  if (!rules) page.require_reward_model();
  const auto reward = rules ? page.rewards("reward", config.reward)
                            : page.scorer("reward", {.of = "reward", .weights = "reward", .head = "score"});
  const auto gae = page.advantages("values", "gae");
  Plan plan = rollout_plan(config);
  plan.graph = graph::trace(
      [&](graph::Value prompts) {
        graph::Value samples = page.samples(policy, prompts);
        graph::Value reference_log_probs = reference("log_probs", samples);
        graph::Value values = value("values", samples);
        graph::Value rewards = reward("score", samples);
        graph::Value advantages = gae(merge(reference_log_probs, values, rewards));
        trainer.train(advantages, page.updates());
        value.train(advantages, page.updates());
        link(trainer, policy);
      },
      {page.prompts()}, "ppo");
  plan.phases = ppo_phases();
  const graph::ModelHandle* judge = rules ? nullptr : &reward;
  plan.evaluations =
      evaluations(page, trainer,
                  {MeasureKind::kCompletions,
                   [&](const AskedMeasure& asked) { return completion_evaluation(page, asked, policy, judge); }},
                  judge);
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe

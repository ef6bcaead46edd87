#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

namespace {

// Returns the model whose scores are the rewards: a reward model that judges, or the config's rules and functions.
graph::ModelHandle rewards_of(Page& page, const Config& config, bool judged) {
  if (!judged) return page.rewards("reward", config.reward);
  page.require_reward_model();
  return page.scorer("reward", {.of = "reward", .weights = "reward", .head = "score"});
}

}  // namespace

// Plans group relative policy optimisation (Shao et al. 2024), which compares the samples of a prompt with each other
// and has no value model. Rules or functions give the rewards, else a reward model does.
Plan grpo(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy = page.generator("policy", {.weights = "policy", .trained = true});
  const Page::Role trained{.weights = "policy", .trained = true, .rows = "rollouts", .loss = "grpo"};
  const auto trainer = page.trainer("policy_trainer", trained);
  const bool judged = config.reward->is_null() && config.models.find("reward") != nullptr;
  const auto reward = rewards_of(page, config, judged);
  const auto filter = page.mixed_groups();
  const auto advantages = page.advantages("groups", "group");
  const bool kl =
      page.loss(trained).reads(batch::kReferenceLogProbs) || page.advantages_read_reference("groups", "group");
  std::optional<graph::ModelHandle> reference;
  page.may_read("reference");
  if (kl) reference = page.scorer("reference", {.of = "reference", .weights = "reference"});
  Plan plan = rollout_plan(config);
  plan.graph = graph::trace(
      [&](graph::Value prompts) {
        graph::Value samples = page.samples(policy, prompts);
        graph::Value scored = reward("score", samples);
        if (filter) scored = (*filter)("keep", scored);
        if (kl) scored = filter ? (*reference)("log_probs", scored) : merge(scored, (*reference)("log_probs", samples));
        trainer.train(advantages(scored), page.updates());
        link(trainer, policy);
      },
      {page.prompts()}, "grpo");
  plan.phases = {{"policy.generate", "gen"},
                 {"policy.old_log_probs", "old_log_prob"},
                 {"reward.score", "reward"},
                 {"reference.log_probs", "ref"},
                 {"mixed_groups.keep", "reward"},
                 {"advantages", "adv"},
                 {"policy_trainer.train", "update_actor"}};
  const graph::ModelHandle* judge = judged ? &reward : nullptr;
  plan.evaluations =
      evaluations(page, trainer,
                  {MeasureKind::kCompletions,
                   [&](const AskedMeasure& asked) { return completion_evaluation(page, asked, policy, judge); }},
                  judge);
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe

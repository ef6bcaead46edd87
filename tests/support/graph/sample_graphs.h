#pragma once

#include "collimate/graph/trace.h"

// The small algorithms that the tests of graph and plan share.
namespace collimate::graph::samples {

inline FunctionSpec spec(std::string name, Kind kind, std::vector<Column> needs, std::vector<Column> makes) {
  FunctionSpec made;
  made.name = std::move(name);
  made.kind = kind;
  made.needs = std::move(needs);
  made.makes = std::move(makes);
  return made;
}
inline FunctionSpec generate() {
  FunctionSpec made = spec("generate", Kind::kGenerate, {"prompt_ids"}, {"ids:i64", "log_probs:f32"});
  made.streams = true;
  return made;
}
inline FunctionSpec score(std::string name, std::vector<Column> needs, Column makes) {
  return spec(std::move(name), Kind::kScore, std::move(needs), {std::move(makes)});
}
inline FunctionSpec train(std::vector<Column> needs) {
  FunctionSpec made = spec("train", Kind::kTrain, std::move(needs), {});
  made.granularity = Granularity::kIteration;
  made.writes_weights = true;
  made.retry_safe = false;
  return made;
}
inline FunctionSpec host(std::string name, Granularity granularity, std::vector<Column> needs, Column makes) {
  FunctionSpec made = spec(std::move(name), Kind::kHost, std::move(needs), {std::move(makes)});
  made.granularity = granularity;
  return made;
}
inline std::vector<Input> prompts() { return {{"prompts", {"prompt_ids"}}}; }

// policy generates, a rule scores finished groups, the trainer trains, policy gets the weights. With `filter`, a host
// function drops whole groups after the reward.
inline Graph grpo(bool filter = false) {
  ModelHandle policy("policy", {generate()});
  ModelHandle trainer("trainer", {train({"ids", "advantages"})});
  ModelHandle reward = host_function(host("reward", Granularity::kGroup, {"ids"}, "rewards:f32"));
  ModelHandle advantages = host_function(host("advantages", Granularity::kIteration, {"rewards"}, "advantages:f32"));
  FunctionSpec keep = host("filter", Granularity::kGroup, {"rewards"}, "kept");
  keep.drops_rows = true;
  ModelHandle dynamic_filter = host_function(keep);
  return trace(
      [&](Value input) {
        Value rewards = reward(policy("generate", input));
        if (filter) rewards = dynamic_filter(rewards);
        trainer.train(advantages(rewards));
        link(trainer, policy, every(1));
      },
      prompts(), "grpo");
}

inline Graph ppo() {
  ModelHandle policy("policy", {generate()});
  ModelHandle reference("reference", {score("log_probs", {"ids"}, "reference_log_probs:f32")});
  ModelHandle value("value", {score("values", {"ids"}, "values:f32"), train({"ids", "returns"})});
  ModelHandle reward("reward", {score("score", {"ids", "reference_log_probs"}, "scores:f32")});
  ModelHandle trainer("trainer", {train({"ids", "advantages:f32"})});
  FunctionSpec estimate = host("gae", Granularity::kIteration, {"scores", "values"}, "advantages:f32");
  estimate.makes.push_back("returns:f32");
  ModelHandle gae = host_function(estimate);
  return trace(
      [&](Value input) {
        Value completions = policy("generate", input);
        Value reference_lp = reference("log_probs", completions);
        Value values = value("values", completions);
        Value scores = reward("score", completions, reference_lp);
        Value advantages = gae(merge(completions, reference_lp, values, scores));
        trainer.train(advantages);
        value.train(advantages);
        link(trainer, policy, every(1));
      },
      prompts(), "ppo");
}

}  // namespace collimate::graph::samples

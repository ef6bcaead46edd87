#include "collimate/plan/inputs/flows.h"

#include "collimate/base/edit_distance.h"
#include "collimate/graph/trace.h"

namespace collimate::plan {
namespace {

using graph::Column;
using graph::FunctionSpec;
using graph::Granularity;
using graph::Kind;
using graph::ModelHandle;
using graph::Value;

FunctionSpec function(std::string name, Kind kind, std::vector<Column> needs, std::vector<Column> makes) {
  FunctionSpec made;
  made.name = std::move(name);
  made.kind = kind;
  made.needs = std::move(needs);
  made.makes = std::move(makes);
  made.streams = kind == Kind::kGenerate;
  made.writes_weights = kind == Kind::kTrain;
  made.retry_safe = kind != Kind::kTrain;
  if (kind == Kind::kTrain) made.granularity = Granularity::kIteration;
  return made;
}

ModelHandle on_host(FunctionSpec spec) {
  spec.granularity = Granularity::kIteration;
  return graph::host_function(std::move(spec));
}

FunctionSpec generate() { return function("generate", Kind::kGenerate, {"prompt_ids"}, {"ids:i64", "log_probs:f32"}); }
FunctionSpec log_probs() { return function("log_probs", Kind::kScore, {"ids"}, {"reference_log_probs:f32"}); }
FunctionSpec train(std::vector<Column> needs) { return function("train", Kind::kTrain, std::move(needs), {}); }

graph::Graph ppo() {
  const ModelHandle policy("policy", {generate()}), reference("reference", {log_probs()});
  const ModelHandle value("value",
                          {function("values", Kind::kScore, {"ids"}, {"values:f32"}), train({"ids", "returns"})});
  const ModelHandle reward("reward", {function("score", Kind::kScore, {"ids"}, {"scores:f32"})});
  const ModelHandle trainer("policy_trainer", {train({"ids", "advantages"})});
  const ModelHandle gae = on_host(
      function("gae", Kind::kHost, {"scores", "values", "reference_log_probs"}, {"advantages:f32", "returns:f32"}));
  return graph::trace(
      [&](Value prompts) {
        const Value samples = policy("generate", prompts);
        const Value scored = merge(reference("log_probs", samples), value("values", samples), reward("score", samples));
        const Value advantages = gae(scored);
        trainer.train(advantages);
        value.train(advantages);
        link(trainer, policy);
      },
      {{"prompts", {"prompt_ids"}}}, "ppo");
}

graph::Graph grpo() {
  const ModelHandle policy("policy", {generate()}), reference("reference", {log_probs()});
  const ModelHandle trainer("policy_trainer", {train({"ids", "advantages"})});
  const ModelHandle reward = on_host(function("reward", Kind::kHost, {"ids"}, {"rewards:f32"}));
  const ModelHandle advantages = on_host(function("advantages", Kind::kHost, {"rewards"}, {"advantages:f32"}));
  return graph::trace(
      [&](Value prompts) {
        const Value samples = policy("generate", prompts);
        trainer.train(advantages(merge(reward("reward", samples), reference("log_probs", samples))));
        link(trainer, policy);
      },
      {{"prompts", {"prompt_ids"}}}, "grpo");
}

}  // namespace

graph::Graph flow_of(const std::string& algorithm) {
  if (algorithm == "ppo") return ppo();
  if (algorithm == "grpo") return grpo();
  base::throw_unknown_choice("--flow", algorithm, {"ppo", "grpo"}, "a graph's .json file or ");
}

}  // namespace collimate::plan

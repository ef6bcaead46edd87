#include "collimate/recipe/plan.h"

#include "collimate/base/error.h"
#include "collimate/rlhf/modules/decoder.h"

namespace collimate::recipe {
namespace {

// Rows of an iteration and their lengths, for the memory plan.
void add_row_limits(const Config& config, nlohmann::json& parameters) {
  const bool rollout = config.recipe == std::string("grpo") || config.recipe == std::string("ppo");
  const int64_t completion = config.rollout.completion_tokens;
  parameters["rows"] = rollout ? rollout_rows(config) : config.train.samples_per_update.get();
  parameters["row_tokens"] = rollout ? config.rollout.prompt_tokens + completion : config.data.max_tokens.get();
  parameters["predicted_tokens"] = rollout ? completion : config.data.max_tokens.get();
}

// The config section of a role; roles that the user does not name are the policy's.
nlohmann::json model_section(const Config& config, const std::string& of) {
  for (const std::string& name : {of, std::string("policy")})
    if (const rlhf::ModelOptions* section = config.models.find(name)) return base::to_json(section->section_value());
  throw base::InputError(
      base::expectation("models", "a model \"policy\"", "none", "models: {policy: {path: DIRECTORY}}"));
}

}  // namespace

nlohmann::json Page::decoder_parameters(const Role& role) const {
  nlohmann::json parameters = model_section(config_, role.of);
  parameters["weights"] = role.weights;
  parameters["trained"] = role.trained;
  parameters["head"] = role.head;
  parameters["loss"] = role.loss;
  const int64_t rows =
      role.loss == "policy" || role.loss == "value" ? rollout_rows(config_) : config_.train.samples_per_update.get();
  parameters["total_updates"] = config_.run.iterations * updates_per_iteration(config_, rows);
  add_row_limits(config_, parameters);
  return parameters;
}

graph::ModelHandle Page::add(const std::string& model, const std::string& kind, nlohmann::json parameters) {
  const std::vector<graph::FunctionSpec> functions = registry_.create(kind, parameters)->functions();
  modules_[model] = {kind, std::move(parameters)};
  return graph::ModelHandle(model, functions);
}

graph::ModelHandle Page::generator(const std::string& model, const Role& role) {
  return add(model, "generator", decoder_parameters(role));
}
graph::ModelHandle Page::scorer(const std::string& model, const Role& role) {
  return add(model, "scorer", decoder_parameters(role));
}
graph::ModelHandle Page::trainer(const std::string& model, const Role& role) {
  return add(model, "trainer", decoder_parameters(role));
}

graph::ModelHandle Page::rewards(const std::string& model, const nlohmann::json& list) {
  if (list.is_null())
    throw base::InputError(base::expectation("reward", "a list of rewards", "none", "reward: [{rule: exact}]"));
  return add(model, "rewards",
             {{"rewards", list.is_array() ? list : nlohmann::json::array({list})},
              {"tokenizer", model_section(config_, "policy").at("path")}});
}

graph::ModelHandle Page::host(const std::string& kind, const nlohmann::json& parameters) {
  return add(kind, kind, parameters);
}

graph::With Page::updates() const {
  return graph::with(
      {{"rows_per_update", config_.train.samples_per_update.get()}, {"epochs", config_.train.epochs.get()}});
}

int64_t rollout_rows(const Config& config) {
  return config.rollout.prompts_per_iteration * config.rollout.samples_per_prompt;
}

int64_t updates_per_iteration(const Config& config, int64_t rows) {
  const int64_t per_update = config.train.samples_per_update;
  return config.train.epochs * (per_update == 0 ? 1 : (rows + per_update - 1) / per_update);
}

Plan make_plan(const Config& config, const flow::Registry& registry) {
  using Make = Plan (*)(const Config&, const flow::Registry&);
  static const std::vector<std::pair<std::string, Make>> pages = {
      {"sft", sft}, {"reward", reward}, {"dpo", dpo}, {"grpo", grpo}, {"ppo", ppo}};
  for (const auto& [name, make] : pages)
    if (name == config.recipe.get()) return make(config, registry);
  throw base::InputError(
      base::expectation("recipe", "sft, reward, dpo, grpo or ppo", "\"" + config.recipe.get() + "\""));
}

Config load(const std::string& path, const std::vector<std::string>& sets) {
  Config config;
  base::apply(base::load_config(path, sets), config);
  if (config.recipe->empty()) throw base::InputError(base::expectation(path, "a key recipe", "none", "recipe: grpo"));
  return config;
}

}  // namespace collimate::recipe

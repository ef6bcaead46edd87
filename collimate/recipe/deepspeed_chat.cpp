#include "collimate/recipe/deepspeed_chat.h"

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/attempt.h"
#include "collimate/recipe/check.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/registry.h"
#include "collimate/rlhf/types/ptx.h"
#include "collimate/text/equal_tokens.h"

namespace collimate::recipe {
namespace {

nlohmann::json config_values(const std::string& actor, const std::string& critic, int64_t iterations,
                             const nlohmann::json& options) {
  nlohmann::json values = {{"recipe", "ppo"},
                           {"preset", "deepspeed-chat-ppo"},
                           {"models", {{"policy", {{"path", actor}}}, {"value", {{"path", critic}}}}},
                           {"run", {{"iterations", iterations}}}};
  if (!options.is_null() && !options.is_object())
    throw base::InputError(base::expectation("options", "a mapping of a config's keys", options.dump()));
  if (!options.contains("reward")) values["models"]["reward"] = {{"path", critic}};
  if (options.is_object()) values.merge_patch(options);
  return values;
}

// Throws InputError for a config that the loop cannot follow: it has the iterations that it is made with, the losses of
// PPO, and one device.
void require_loop(const Config& config) {
  if (config.recipe != std::string("ppo"))
    throw base::InputError(base::expectation("recipe", "ppo, whose losses the loop returns", config.recipe));
  if (config.run.epochs.get())
    throw base::InputError(base::expectation("run.epochs", "nothing, as the loop has total_iterations",
                                             fmt::to_string(*config.run.epochs.get()), "leaving it out"));
  if (!config.rollout.round_shares->empty())
    throw base::InputError(base::expectation(
        "rollout.round_shares", "nothing where a program has the loop itself, which draws samples whole",
        nlohmann::json(config.rollout.round_shares.get()).dump(), "leaving it out, or collimate train"));
  const auto refuse_layout = [](const char* key, const char* expected, const std::string& got) {
    throw base::InputError(base::expectation(key, fmt::format("{} where a program has the loop itself", expected), got,
                                             "collimate train, which has the loop"));
  };
  if (config.devices != 1) refuse_layout("devices", "1", std::to_string(config.devices));
  if (config.placement.get() != "flattening") refuse_layout("placement", "flattening", config.placement.get().dump());
}

}  // namespace

DeepSpeedRLHFEngine::DeepSpeedRLHFEngine(const std::string& actor, const std::string& critic,
                                         const text::Tokenizer& tokenizer, int64_t total_iterations,
                                         const nlohmann::json& options)
    : config_(load_values(config_values(actor, critic, total_iterations, options), {})),
      registry_(module_registry()),
      plan_(complete_plan(config_, registry_)),
      data_(read_data(config_, plan_)) {
  require_loop(config_);
  settle_iterations(config_, registry_, data_, plan_);
  text::require_equal_tokens(*data_.tokenizer, tokenizer, "tokenizer");
  const graph::Placement placement = make_placement(config_, plan_);
  refuse(inspect(config_, plan_, placement, data_).refused);
  flow::RunOptions run;
  run.seed = static_cast<uint64_t>(config_.run.seed.get());
  run.config = base::to_json(config_.section_value());
  run.modules = plan_.modules;
  run.threads_per_worker = threads_of(config_, placement);
  run.memory_budget_bytes = config_.run.memory_budget * (int64_t{1} << 20);
  run.deadline_seconds = config_.run.deadline_seconds;
  run.swap_directory = config_.run.swap_directory;
  models_ = std::make_unique<flow::ByHand>(plan_.graph, registry_, run);
}

Batch DeepSpeedRLHFEngine::prompts(int64_t iteration) {
  models_->begin_iteration(iteration);
  const int64_t rows = plan_.rows_per_iteration;
  return data_.rows(iteration, rows, 0, data_.train->rows_of(iteration, rows));
}

void DeepSpeedRLHFEngine::save(const std::string& directory) {
  models_->save_checkpoint("policy_trainer", directory + "/actor");
  models_->save_checkpoint("value", directory + "/critic");
}

Batch DeepSpeedPPOTrainer::generate_experience(const Batch& prompts) { return engine_.models().experience(prompts); }

PPOLosses DeepSpeedPPOTrainer::train_rlhf(const Batch& experience) {
  engine_.models().metrics();  // drops those of the experience
  engine_.models().train(experience);
  flow::MetricSet measured;
  measured.add(engine_.models().metrics());
  metrics_ = measured.values();
  return {measured_as("actor/pg_loss"), measured_as("critic/vf_loss")};
}

double DeepSpeedPPOTrainer::measured_as(const std::string& name) const {
  if (const auto found = metrics_.find(name); found != metrics_.end()) return found->get<double>();
  throw base::InputError(base::expectation("train_rlhf", name + " to be measured", "no rows that were trained"));
}

double DeepSpeedPPOTrainer::train_unsupervised(const Batch& experience, double coefficient) {
  if (!experience.has(rlhf::kPtxIds.name))
    throw base::InputError(
        base::expectation("train_unsupervised", "rows with texts beside them", "none", "options: {data: {ptx: FILE}}"));
  const double weight = engine_.config().train.ptx_weight;
  if (coefficient != weight)
    throw base::InputError(base::expectation("train_unsupervised", fmt::format("train.ptx_weight, {}", weight),
                                             fmt::format("the coefficient {}", coefficient),
                                             "options: {train: {ptx_weight: COEFFICIENT}}"));
  return measured_as("actor/ptx_loss");
}

}  // namespace collimate::recipe

#include "collimate/recipe/page.h"

#include <algorithm>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/recipe/gym_entry.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/shared_base.h"
#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/advantages.h"
#include "collimate/rlhf/modules/decoder.h"

namespace collimate::recipe {
namespace {

// Returns the rows of one iteration: prompts × samples.
int64_t rollout_rows(const Config& config) {
  return config.rollout.prompts_per_iteration * config.rollout.samples_per_prompt;
}

// Adds whether rows are drawn and, for the memory plan, how many an iteration has and how long they are.
void add_row_limits(const Config& config, nlohmann::json& parameters) {
  const bool rollout = find_recipe(config.recipe).rows == rlhf::RowKind::kPrompt;
  const int64_t completion = config.rollout.completion_tokens;
  parameters["sampled"] = rollout;
  parameters["rows"] = rollout ? rollout_rows(config) : config.train.samples_per_update.get();
  const int64_t redrawn = config.redraws() ? completion : 0;
  parameters["row_tokens"] =
      rollout ? config.rollout.prompt_tokens + completion : config.data.max_tokens.get() + redrawn;
  parameters["predicted_tokens"] = rollout ? completion : std::max(config.data.max_tokens.get(), redrawn);
  // All roles have one rotary position embedding, whichever of them reads the longest rows.
  int64_t longest = parameters.at("row_tokens").get<int64_t>();
  if (!config.data.ptx->is_null()) longest = std::max(longest, config.data.max_tokens.get());
  for (const AskedMeasure& asked : asked_measures(config)) longest = std::max(longest, longest_row(config, asked));
  parameters["longest_tokens"] = longest;
}

constexpr const char* kMixedGroups = "mixed_groups";

// For the memory plan, so many rows of one length are measured at a time.
constexpr int64_t kMeasuredRows = 64;

// Returns the phase of a node that its page gives no other; for a module of the user's own that is the node's id.
std::string usual_phase(const std::string& kind, const graph::Node& node) {
  if (kind == "generator") return node.function == "generate" ? "gen" : "old_log_prob";
  if (kind == "rewards" || kind == kMixedGroups) return "reward";
  if (kind == "trainer" && node.function == "train") return "update_actor";
  if (kind == "scorer" && node.function == "log_probs") return "ref";
  if (kind == "finished_samples") return "rounds";
  return kind.starts_with("advantages.") ? "adv" : node.id;
}

// Returns " beside models.judge", with the names of models that may have been meant to judge; "" for none.
std::string beside_models(const Config& config) {
  std::string names;
  for (const auto& [name, section] : config.models)
    if (name != "policy" && name != "reference" && name != "value")
      names += (names.empty() ? "" : ", ") + ("models." + name);
  return names.empty() ? "" : " beside " + names;
}

// Leaves out the adapters of a model that the recipe does not train, as only trained models have them. Where it has no
// section of its own it is the policy as that begins: without adapters. Throws InputError for adapters in its own
// section.
void leave_out_adapters(const Config& config, const std::string& role, nlohmann::json& parameters) {
  const rlhf::ModelOptions* own = config.models.find(role);
  const nlohmann::json unset = base::to_json(rlhf::LoraSection().section_value());
  if (own != nullptr && parameters.at("lora") != unset)
    throw base::InputError(base::expectation(fmt::format("models.{}.lora", role),
                                             "nothing, as only models that are trained have adapters",
                                             parameters.at("lora").dump(), "leaving it out"));
  parameters["lora"] = unset;
}

// Throws InputError for dropout in a recipe that draws answers. Their log-probs are compared with those of training,
// where nothing may then be dropped.
void refuse_dropout_of_samples(const std::string& role, const nlohmann::json& parameters) {
  const nlohmann::json& dropout = parameters.at("lora").at("dropout");
  if (parameters.at("sampled") == true && dropout > 0)
    throw base::InputError(base::expectation(fmt::format("models.{}.lora.dropout", role),
                                             "0 in a recipe that draws its answers", dropout.dump(), "leaving it out"));
}

}  // namespace

bool Plan::calls(const std::string& model, const std::string& function) const {
  const auto called = [&](const graph::Graph& from) {
    return std::ranges::any_of(
        from.nodes, [&](const graph::Node& node) { return node.model == model && node.function == function; });
  };
  return called(graph) || std::ranges::any_of(evaluations, called, &EvaluationPlan::graph);
}

nlohmann::json Page::decoder_parameters(const Role& role) {
  roles_.insert(role.of);
  nlohmann::json parameters = base::to_json(config_.model(role.of).section_value());
  if (!role.trained) leave_out_adapters(config_, role.of, parameters);
  parameters["weights"] = role.weights;
  parameters["trained"] = role.trained;
  parameters["head"] = role.head;
  if (role.trained && !role.rows.empty()) {
    parameters["loss_rows"] = role.rows;
    parameters["default_loss"] = role.loss;
    parameters["algorithm"] = base::to_json(algorithm(role).section_value());
  }
  add_row_limits(config_, parameters);
  refuse_dropout_of_samples(role.of, parameters);
  return parameters;
}

graph::ModelHandle Page::add(const std::string& model, const std::string& kind, nlohmann::json parameters) {
  const std::vector<graph::FunctionSpec> functions = registry_.create(kind, parameters)->functions();
  const auto [made, fresh] = modules_.try_emplace(model, flow::ModuleChoice{.kind = kind, .parameters = parameters});
  if (!fresh && (made->second.kind != kind || made->second.parameters != parameters))
    throw base::InputError(base::expectation("recipe " + config_.recipe.get(), "a name of its own for each model",
                                             fmt::format("\"{}\" again, for another one", model), "another name"));
  return graph::ModelHandle(model, functions);
}

graph::ModelHandle Page::generator(const std::string& model, const Role& role) {
  reads("rollout");
  nlohmann::json parameters = decoder_parameters(role);
  for (const AskedMeasure& asked : asked_measures(config_))
    parameters["row_tokens"] = std::max(parameters.at("row_tokens").get<int64_t>(),
                                        config_.rollout.prompt_tokens + completion_tokens(asked, config_));
  parameters["gym"] = gym_entry(config_);
  return add(model, "generator", std::move(parameters));
}
// Reads no options of prompts: the rows are the data's, and an update says how many they are.
graph::ModelHandle Page::redrawer(const std::string& model, const Role& role) {
  static const std::set<std::string> kOfPrompts = {"prompts_per_iteration", "samples_per_prompt", "prompt_tokens",
                                                   "replace_equal_groups",  "round_shares",       "round_min_samples"};
  const nlohmann::json rollout = base::to_json(config_.rollout.section_value());
  for (const auto& [option, value] : rollout.items())
    if (!kOfPrompts.contains(option)) reads("rollout." + option);
  nlohmann::json parameters = decoder_parameters(role);
  parameters["drawn_share"] = config_.algorithm.on_policy_share.get();
  return add(model, "generator", std::move(parameters));
}
graph::ModelHandle Page::model(const std::string& model, const std::string& kind, const nlohmann::json& parameters) {
  return add(model, kind, parameters);
}
graph::ModelHandle Page::scorer(const std::string& model, const Role& role) {
  nlohmann::json parameters = decoder_parameters(role);
  if (!role.trained && role.of == "reward") {
    reads("algorithm.step_reward");
    parameters["step_reward"] = config_.algorithm.step_reward.get();
    parameters["step_separator"] = config_.data.step_separator.get();
    if (config_.algorithm.step_reward != std::string("none")) reads("data.step_separator");
  }
  return add(model, "scorer", std::move(parameters));
}
graph::ModelHandle Page::trainer(const std::string& model, const Role& role) {
  const auto types = rlhf::chosen_types(algorithm(role), role.loss);
  for (const std::string& option : rlhf::loss_options(role.rows, types)) reads("algorithm." + option);
  for (const std::string& option : rlhf::train_options(role.head, role.rows)) reads("train." + option);
  trainers_.insert(model);
  nlohmann::json parameters = decoder_parameters(role);
  if (role.rows == "rollouts") {
    reads("data.ptx");
    if (!config_.data.ptx->is_null()) {
      for (const char* option : {"train.ptx_weight", "data.max_tokens"}) reads(option);
      parameters["ptx_tokens"] = config_.data.max_tokens.get();
    }
  }
  return add(model, "trainer", std::move(parameters));
}

graph::ModelHandle Page::teacher() {
  if (config_.models.find("teacher") == nullptr)
    throw base::InputError(base::expectation("models.teacher", "the model whose distributions are learned", "none",
                                             "models: {teacher: {path: DIRECTORY}}"));
  reads("algorithm.teacher_tokens");
  reads("algorithm.on_policy_share");
  if (config_.redraws() && config_.algorithm.data_loss_weight > 0)
    throw base::InputError(
        base::expectation("algorithm.data_loss_weight", "0 with on_policy_share, as drawn answers are no data",
                          fmt::to_string(config_.algorithm.data_loss_weight.get()), "on_policy_share: 0"));
  nlohmann::json parameters = decoder_parameters({.of = "teacher", .weights = "teacher"});
  parameters["algorithm"] = base::to_json(config_.algorithm.section_value());
  return add("teacher", "scorer", std::move(parameters));
}

graph::ModelHandle Page::rewards(const std::string& model, const nlohmann::json& list, bool answers) {
  if (list.is_null())
    throw base::InputError(base::expectation(
        "reward", fmt::format("a list of rewards, by which recipe {} judges completions", config_.recipe.get()),
        "none" + beside_models(config_),
        fmt::format("reward: [{{rule: exact}}] or [{{python: \"reward.py:score\"}}]{}",
                    config_.recipe == std::string("grpo") ? ", or models: {reward: {path: DIRECTORY}}" : "")));
  if (list == config_.reward.get()) reads("reward");
  check_gym_entries(config_, list);
  rewards_.insert(model);
  nlohmann::json parameters = {{"rewards", list.is_array() ? list : nlohmann::json::array({list})},
                               {"tokenizer", config_.model("policy").path.get()}};
  if (answers) parameters["answers"] = true;
  return add(model, "rewards", std::move(parameters));
}

graph::ModelHandle Page::advantages(const std::string& rows, const std::string& fallback) {
  const rlhf::AdvantageEntry& entry = rlhf::find_advantage(rows, fallback, config_.algorithm);
  compares_samples_ = rows == "groups" && entry.compares_samples;
  greedy_baseline_ = entry.greedy_baseline;
  if (greedy_baseline_ && config_.rollout.samples_per_prompt < 2)
    throw base::InputError(base::expectation(
        "rollout.samples_per_prompt",
        fmt::format("at least 2, as the last sample of a prompt is the greedy one with advantage {}", entry.name),
        std::to_string(config_.rollout.samples_per_prompt)));
  if (config_.algorithm.overlong_buffer_tokens > config_.rollout.completion_tokens)
    throw base::InputError(base::expectation(
        "algorithm.overlong_buffer_tokens",
        fmt::format("at most the {} of rollout.completion_tokens", config_.rollout.completion_tokens.get()),
        std::to_string(config_.algorithm.overlong_buffer_tokens), "a fifth of them"));
  for (const auto& options : {entry.options, rlhf::reward_options(entry)})
    for (const std::string& option : options) reads("algorithm." + option);
  return add("advantages", "advantages." + entry.name, base::to_json(config_.algorithm.section_value()));
}

std::optional<graph::ModelHandle> Page::mixed_groups() {
  if (!config_.rollout.replace_equal_groups) return std::nullopt;
  if (config_.rollout.samples_per_prompt < 2)
    throw base::InputError(base::expectation("rollout.replace_equal_groups",
                                             "false with one sample of a prompt, whose group is always equal", "true",
                                             "rollout.samples_per_prompt: 8"));
  return add(kMixedGroups, kMixedGroups, nlohmann::json::object());
}

graph::ModelHandle Page::kl_estimate() { return add("kl_estimate", "kl_estimate", nlohmann::json::object()); }

bool Page::advantages_read_reference(const std::string& rows, const std::string& fallback) const {
  return rlhf::reads_reference(rlhf::find_advantage(rows, fallback, config_.algorithm), config_.algorithm);
}

graph::ModelHandle Page::measuring(const std::string& kind, const graph::ModelHandle& trainer, int64_t row_tokens) {
  const std::string model = "held_out_" + kind;
  const auto made = modules_.find(model);
  if (made == modules_.end()) {
    links_.push_back({trainer.name(), model});
  } else {
    row_tokens = std::max(row_tokens, made->second.parameters.at("row_tokens").get<int64_t>());
    modules_.erase(made);  // the new one reads the longer rows too
  }
  nlohmann::json parameters = decoder_parameters({.weights = "policy", .trained = true});
  parameters["sampled"] = false;
  parameters["rows"] = kMeasuredRows;
  parameters["row_tokens"] = parameters["predicted_tokens"] = row_tokens;
  if (kind == "generator") parameters["gym"] = gym_entry(config_);
  return add(model, kind, std::move(parameters));
}

const nlohmann::json& Page::rules_of(const AskedMeasure& asked) const {
  if (!asked.options.reward->is_null()) return asked.options.reward;
  if (!config_.reward->is_null()) return config_.reward;
  throw base::InputError(
      base::expectation(asked.key + ".reward", "a reward that judges completions", "none", "reward: [{rule: exact}]"));
}

std::string Page::unused_name(const std::string& model) const {
  std::string name = model;
  for (int number = 2; modules_.contains(name); ++number) name = fmt::format("{}_{}", model, number);
  return name;
}

// A value model has one loss: loss_type is about the policy's.
rlhf::AlgorithmSection Page::algorithm(const Role& role) const {
  rlhf::AlgorithmSection algorithm;
  base::apply(base::to_json(config_.algorithm.section_value()), "algorithm", algorithm);
  if (role.rows != "values") return algorithm;
  algorithm.loss_type = {};
  algorithm.loss_weights = {};
  return algorithm;
}

rlhf::Loss Page::loss(const Role& role) const {
  return rlhf::make_loss(role.rows, role.loss,
                         {.options = algorithm(role), .completion_tokens = config_.rollout.completion_tokens});
}

void Page::require_reward_model() const {
  const rlhf::ModelOptions* model = config_.models.find("reward");
  if (model == nullptr)
    throw base::InputError(base::expectation("reward", "a list of rewards, or models.reward",
                                             "neither" + beside_models(config_),
                                             "reward: [{rule: exact}], or models: {reward: {path: DIRECTORY}}"));
  if (model->from_scratch)
    throw base::InputError(base::expectation("models.reward.from_scratch", "false, as the model is not trained here",
                                             "true", "a model that recipe: reward has trained"));
}

// Throws InputError where groups are to be replaced and the page has not asked for mixed_groups().
void Page::check_replacing() const {
  if (!config_.rollout.replace_equal_groups || modules_.contains(kMixedGroups) ||
      find_recipe(config_.recipe).rows != rlhf::RowKind::kPrompt)
    return;
  throw base::InputError(base::expectation(
      "rollout.replace_equal_groups",
      fmt::format("false with recipe {}, which does not compare the samples of a prompt", config_.recipe.get()), "true",
      "recipe: grpo"));
}

Plan Page::finish(Plan plan) const {
  check_roles();
  check_replacing();
  check_rounds();
  for (const graph::Node& node : plan.graph.nodes)
    if (const auto made = modules_.find(node.model); made != modules_.end())
      plan.phases.try_emplace(node.id, usual_phase(made->second.kind, node));
  plan.graph.links.insert(plan.graph.links.end(), links_.begin(), links_.end());
  for (const EvaluationPlan& evaluation : plan.evaluations)
    for (const auto& [name, model] : evaluation.graph.models) plan.graph.models.try_emplace(name, model);
  plan.modules = modules_;
  plan.trainers = trainers_;
  plan.rewards = rewards_;
  plan.compares_samples = compares_samples_;
  plan.greedy_baseline = greedy_baseline_;
  plan.draws_in_rounds = draws_in_rounds(config_);
  tell_updates(config_, plan);
  share_bases(plan);
  plan.read_options = read_options_;
  return plan;
}

graph::With Page::updates() const {
  return graph::with(
      {{"rows_per_update", config_.train.samples_per_update.get()}, {"epochs", config_.train.ppo_epochs.get()}});
}

Plan rollout_plan(const Config& config) {
  Plan plan;
  plan.rows_per_iteration = rollout_rows(config);
  plan.group_size = config.rollout.samples_per_prompt;
  plan.samples_node = "advantages";
  plan.trained = "policy_trainer";
  return plan;
}

Plan pair_plan(Page& page, const Page::Role& trained) {
  const rlhf::Loss loss = page.loss(trained);
  Plan plan;
  plan.rows_per_iteration = page.config().train.samples_per_update;
  plan.group_size = 2;
  plan.trained = "policy";
  plan.margins = loss.reads(rlhf::kMargin);
  plan.padded_pairs = loss.reads(batch::kUnpaddedTokens);
  plan.prompt_is_trained = loss.reads(rlhf::kCompletion);
  plan.learns_to_stop = trained.head == "lm";  // a score is of the last token, whatever that is
  if (trained.rows == "pairs" && !plan.prompt_is_trained) page.reads("data.train_from_difference");
  return plan;
}

}  // namespace collimate::recipe

#include "collimate/recipe/chatlearn/chatlearn.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/section.h"
#include "collimate/recipe/chatlearn/placed.h"
#include "collimate/recipe/chatlearn/rows.h"
#include "collimate/recipe/chatlearn/source.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::ConfigNode;
using chatlearn::Model;
using chatlearn::Role;
using chatlearn::Row;
using chatlearn::Source;
using chatlearn::Value;
using nlohmann::json;

std::string shown(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

double real(const ConfigNode& node, std::string_view name) {
  const json value = to_json(node);
  if (value.is_number()) return value.get<double>();
  throw base::InputError(base::expectation(node.where, fmt::format("{} to be a number", name), node.description()));
}

class Translation {
 public:
  Translation(Source source, std::string path) : source_(std::move(source)), path_(std::move(path)) {
    recipe_ = recipe_of();
    rollouts_ = recipe_ != "dpo";
    choose_models();
  }

  ChatLearnConfig made() {
    set("recipe", recipe_, path_);
    if (recipe_ == "grpo" && !online_dpo_) set("preset", "chatlearn-grpo", path_);
    if (online_dpo_) set("algorithm.loss_type", "online_dpo", path_);
    for (const Value& value : source_.environment) translate("environment", "runtime_env", "", value);
    for (const Value& value : source_.others)
      config_.keys.push_back(
          {value.node.where, value.name, shown(to_json(value.node)), "", "", "no section that is read"});
    for (const Value& value : source_.runtime) translate("runtime", "runtime", "", value);
    for (const int turn : {0, 1, 2})  // later ones win: those that generate, then those that train
      for (const Model& model : source_.models)
        if (turn_of(model) == turn) translate_model(model);
    if (rollouts_) settle_samples();
    const nlohmann::ordered_json where = placed(source_, ours_);
    for (const auto& [key, value] : where.items()) set(key, value, path_);
    // With this, sums of generation and training have the same parts.
    const auto tp = [&](size_t of) { return ours_[of].second->number({"tensor_model_parallel_size"}, 1); };
    if (rollouts_ && ours_.size() > 1 && tp(0) != tp(1))
      set("models.policy.reduction_chunks", std::lcm(tp(0), tp(1)), path_);
    return std::move(config_);
  }

 private:
  // Returns the recipe of the engine that a model names, or of the flow whose models there are.
  std::string recipe_of() {
    for (const Model& model : source_.models)
      if (const ConfigNode* engine = model.find("trainer_engine"); engine != nullptr && !engine->text.empty())
        return recipe_of_engine(*engine);
    if (source_.find("train_backend") != nullptr) return "grpo";  // the one flow of the main branch
    if (source_.of(Role::kValue) != nullptr || source_.of(Role::kValueTrainer) != nullptr) return "ppo";
    const bool rewards = source_.of(Role::kReward) != nullptr || source_.of(Role::kRule) != nullptr;
    if (source_.of(Role::kPolicyTrainer) != nullptr && source_.of(Role::kReference) != nullptr && !rewards)
      return "dpo";
    if (source_.of(Role::kPolicyTrainer) != nullptr && rewards) return "grpo";
    std::string names;
    for (const Model& model : source_.models) names += fmt::format("{}{}", names.empty() ? "" : ", ", model.name);
    throw base::InputError(base::expectation(
        path_,
        "the models of ChatLearn's RLHF, DPO, OnlineDPO or GRPO (policy, reference, reward, value, policy_trainer)",
        names.empty() ? "none" : names,
        "trainer_engine: grpo in a model's arguments, or a flow: docs/how-to/own-flows.md"));
  }

  std::string recipe_of_engine(const ConfigNode& engine) {
    if (engine.text == "rlhf") return "ppo";
    if (engine.text == "dpo") return "dpo";
    online_dpo_ = engine.text == "online_dpo";
    if (online_dpo_ || engine.text.starts_with("grpo")) return "grpo";
    throw base::InputError(
        base::expectation(engine.where, "trainer_engine to be rlhf, dpo, online_dpo or grpo", engine.description()));
  }

  // Chooses the models that ours are made of, by the names that the recipe's page has for ours.
  void choose_models() {
    const auto add = [&](const char* name, std::initializer_list<Role> roles) {
      for (const Role role : roles)
        if (const Model* model = source_.of(role); model != nullptr) {
          ours_.emplace_back(name, model);
          return;
        }
    };
    if (rollouts_) {
      add("policy", {Role::kPolicy, Role::kPolicyTrainer});
      add("policy_trainer", {Role::kPolicyTrainer, Role::kPolicy});
    } else {
      add("policy", {Role::kPolicyTrainer, Role::kPolicy});
    }
    if (recipe_ != "grpo" || reads_reference()) add("reference", {Role::kReference});
    if (recipe_ != "ppo") return;
    add("value", {Role::kValueTrainer, Role::kValue});
    add("reward", {Role::kReward});
  }

  bool reads_reference() const {
    const Model* trainer = source_.of(Role::kPolicyTrainer);
    const ConfigNode* coefficient = trainer == nullptr ? nullptr : trainer->find("kl_coef");
    return online_dpo_ ||
           (coefficient != nullptr && !chatlearn::is_no(to_json(*coefficient)) && real(*coefficient, "kl_coef") != 0);
  }

  static int turn_of(const Model& model) {
    if (model.role == Role::kPolicyTrainer || model.role == Role::kValueTrainer) return 2;
    return model.role == Role::kPolicy ? 1 : 0;
  }

  // Sets numbers that ChatLearn has by default: samples of a prompt, rows of an update.
  void settle_samples() {
    set("rollout.samples_per_prompt", samples_per_prompt(), path_);
    if (config_.root.find("rollout")->find("prompts_per_iteration") == nullptr &&
        source_.find("sample_per_episode") != nullptr)
      set("rollout.prompts_per_iteration", std::max<int64_t>(1, episode_samples() / samples_per_prompt()), path_);
    const ConfigNode* train = config_.root.find("train");
    if (source_.find("train_micro_batch_size") != nullptr &&
        (train == nullptr || train->find("samples_per_update") == nullptr))
      set("train.samples_per_update", rows_per_update(), path_);
  }

  void translate_model(const Model& model) {
    const std::string section(model.role ? chatlearn::name_of(*model.role) : "");
    const std::string named = model_name(model);
    current_ = &model;
    for (const Value& value : model.values) translate(section, model.name, named, value);
  }

  // Returns the key of `models` that a model's path and adapters go to; "" where this recipe has none of it.
  std::string model_name(const Model& model) const {
    if (!model.role) return "";
    switch (*model.role) {
      case Role::kPolicy:
      case Role::kPolicyTrainer:
        return "policy";
      case Role::kReference:
        return "reference";
      case Role::kReward:
        return recipe_ == "ppo" ? "reward" : "";
      case Role::kValue:
      case Role::kValueTrainer:
        return recipe_ == "ppo" ? "value" : "";
      case Role::kRule:
        return "";
    }
    return "";
  }

  void translate(const std::string& section, const std::string& holder, const std::string& model, const Value& value) {
    if (value.name == "model_config_file" || value.name == "config_dir" || value.name == "args_dict") return;  // read
    const json theirs = to_json(value.node);
    ChatLearnKey key{value.node.where, fmt::format("{}.{}", holder, value.name), shown(theirs), "", "", ""};
    const Row* row = chatlearn::find_row(section, value.name);
    if (row == nullptr) {
      key.remark = chatlearn::is_known(value.name) ? "it is read of other models alone"
                                                   : "no key of ChatLearn's that is known here";
    } else if (row->key.empty() || (row->key.find("{}") != std::string_view::npos && model.empty())) {
      key.remark = row->key.empty() ? row->remark : "recipe " + recipe_ + " has no such model";
    } else {
      key.remark = row->remark;
      const std::string ours = fmt::format(fmt::runtime(row->key), model);
      const json converted = row->convert == nullptr ? theirs : row->convert(theirs);
      if (converted.is_discarded()) {
        key.ours = derive(ours, value, model);
      } else if (!converted.is_null()) {
        key.ours = settle(ours, converted, value.node.where);
      }
      if (key.ours.empty()) key.remark.clear();
      if (key.ours.starts_with(ours + ":")) key.option = ours;
    }
    config_.keys.push_back(std::move(key));
  }

  // Sets one of our keys in which another key has a part. Returns "key: value", or the key alone where the placement
  // has it.
  std::string derive(const std::string& ours, const Value& value, const std::string& model);
  // Does so for a key of rows, lengths or updates. Returns nothing for another key.
  std::optional<std::string> derive_rows(const std::string& ours, const Value& value);

  // Does so for a key of partial rollouts.
  std::string derive_rounds(const std::string& ours, const Value& value);

  std::string settle(const std::string& ours, const json& value, const std::string& where) {
    set(ours, value, where);
    return fmt::format("{}: {}", ours, shown(value));
  }

  // Returns a number of theirs of at least 1, which more than one section may have; `otherwise` where none has it.
  int64_t number(std::string_view name, int64_t otherwise) const {
    for (const ConfigNode* found : all_of(name))
      if (found->kind != ConfigNode::Kind::kNull) return chatlearn::whole(*found, name);
    return otherwise;
  }
  std::vector<const ConfigNode*> all_of(std::string_view name) const {
    std::vector<const ConfigNode*> found;
    if (const ConfigNode* node = source_.find(name)) found.push_back(node);
    for (const Model& each : source_.models)
      if (const ConfigNode* node = each.find(name)) found.push_back(node);
    return found;
  }
  // Sets the data's files, and for data.train also their weights where there are some.
  std::string files(const std::string& ours, const ConfigNode& node) {
    const ConfigNode* paths = source_.find(ours == "data.train" ? "data_path" : "eval_data_path");
    if (paths == nullptr) return "";
    const auto list_of = [](const json& theirs) {
      return theirs.is_string() ? json(chatlearn::parts(theirs.get<std::string>(), ',')) : theirs;
    };
    json list = list_of(to_json(*paths));
    const ConfigNode* ratio = ours == "data.train" ? source_.find("data_ratio") : nullptr;
    const json weights = ratio == nullptr ? json() : list_of(to_json(*ratio));
    for (size_t i = 0; weights.is_array() && list.is_array() && i < std::min(list.size(), weights.size()); ++i) {
      const json& weight = weights[i];
      const json number = weight.is_string() ? json::parse(weight.get<std::string>(), nullptr, false) : weight;
      if (!number.is_number())
        throw base::InputError(
            base::expectation(ratio->where, "data_ratio to be a list of numbers", ratio->description()));
      list[i] = {{"path", list[i]}, {"weight", number}};
    }
    return settle(ours, list.is_array() && list.size() == 1 ? list[0] : list, node.where);
  }
  // Sets the schedule's name or its floor, which only one schedule of ours has.
  std::string schedule(const std::string& ours, const ConfigNode& node) {
    const Model& trainer = *current_;
    const auto find = [&](std::initializer_list<const char*> names) {
      const ConfigNode* found = nullptr;
      for (const char* name : names)
        if (found == nullptr) found = trainer.find(name);
      return found;
    };
    const ConfigNode* style = find({"lr_decay_style"});
    const ConfigNode* rate = find({"lr", "learning_rate", "optimizer.lr"});
    const ConfigNode* floor = find({"min_lr", "optimizer.min_lr"});
    const bool falls = style != nullptr && style->text == "cosine" && rate != nullptr && floor != nullptr &&
                       real(*floor, "min_lr") > 0 && real(*rate, "lr") > 0;
    if (ours == "train.lr_schedule") return settle(ours, falls ? json("cosine_with_min") : to_json(node), node.where);
    return falls ? settle(ours, real(*floor, "min_lr") / real(*rate, "lr"), node.where) : "";
  }
  // Sets the scaling that ChatLearn has by default where the file has none, and so returns the rank.
  int64_t lora_rank(const std::string& model) {
    const ConfigNode* scaling = current_->find("lora.lora_scaling");
    if (scaling == nullptr || chatlearn::is_no(to_json(*scaling)))
      set(fmt::format("models.{}.lora.alpha", model), 1.0, path_);
    return current_->number({"lora.lora_dim"}, 8);
  }
  int64_t samples_per_prompt() const {
    const int64_t usual = source_.find("train_backend") == nullptr ? 1 : 32;
    return number("num_inference_per_prompt", number("n", number("train_to_compare_num_responses", usual)));
  }
  int64_t rows_per_update() const { return number("train_global_batch_size", number("train_micro_batch_size", 2)); }
  int64_t episode_samples() const { return number("sample_per_episode", 1000); }

  void set(const std::string& path, const json& value, const std::string& where) {
    ConfigNode* node = &config_.root;
    for (const std::string& part : base::split_path(path)) {
      node->kind = ConfigNode::Kind::kMap;
      if (node->where.empty()) node->where = where;
      node = &node->child(part);
    }
    *node = base::from_json(value, where);
  }

  const Source source_;
  const Model* current_ = nullptr;  // whose keys are translated
  const std::string path_;
  std::string recipe_;
  bool online_dpo_ = false, rollouts_ = true;
  using Ours = std::pair<std::string, const Model*>;
  std::vector<Ours> ours_;
  ChatLearnConfig config_;
};

std::optional<std::string> Translation::derive_rows(const std::string& ours, const Value& value) {
  const std::string& where = value.node.where;
  const json theirs = to_json(value.node);
  if (ours == "run.iterations") {
    const int64_t episodes = chatlearn::whole(value.node, value.name);
    const int64_t updates = (episode_samples() + rows_per_update() - 1) / rows_per_update();
    return settle(ours, rollouts_ ? episodes : episodes * updates * number("num_training_epoch", 1), where);
  }
  if (!rollouts_ && (ours == "rollout.prompts_per_iteration" || ours == "train.ppo_epochs")) return "run.iterations";
  if (ours == "rollout.prompts_per_iteration")
    return settle(ours, std::max<int64_t>(1, chatlearn::whole(value.node, value.name) / samples_per_prompt()), where);
  if (ours == "train.ppo_epochs") return settle(ours, theirs, where);
  if (ours == "data.train" || ours == "data.eval") return files(ours, value.node);
  if (ours == "data.max_tokens") return rollouts_ ? "" : settle(ours, theirs, where);
  if (ours == "train.samples_per_update")  // of pairs both rows count
    return settle(ours, (rollouts_ ? 1 : 2) * chatlearn::whole(value.node, value.name), where);
  if (ours == "rollout.samples_per_prompt" && rollouts_) return settle(ours, samples_per_prompt(), where);
  if (ours == "rollout.max_batch_sequences" && rollouts_ && theirs.is_number() && theirs > 0)
    return settle(ours, theirs, where);
  if (ours.starts_with("rollout.round_")) return rollouts_ ? derive_rounds(ours, value) : "";
  if (ours == "rollout.prompt_tokens" && rollouts_) {
    const ConfigNode* added = current_->find("max_new_tokens");
    const int64_t rest =
        chatlearn::whole(value.node, value.name) - (added == nullptr ? 0 : chatlearn::whole(*added, "max_new_tokens"));
    return added != nullptr && rest > 0 ? settle(ours, rest, where) : "";
  }
  return std::nullopt;
}

// ChatLearn has two rounds of a half each, and 16 responses, where the file says nothing.
std::string Translation::derive_rounds(const std::string& ours, const Value& value) {
  const ConfigNode* used = source_.find("use_partial_rollout");
  if (used == nullptr || to_json(*used) != true) return "";
  const int64_t least = number("mini_response_per_prompt", 16) + 1;
  const bool fewer = least < samples_per_prompt();
  if (value.name == "mini_response_per_prompt") return fewer ? fmt::format("{}: {}", ours, least) : "";
  if (value.name != "use_partial_rollout") return ours;
  if (fewer) set("rollout.round_min_samples", least, value.node.where);
  const ConfigNode* ratio = source_.find("rollout_ratio");
  return settle(ours, ratio == nullptr ? json{0.5, 0.5} : to_json(*ratio), value.node.where);
}

std::string Translation::derive(const std::string& ours, const Value& value, const std::string& model) {
  const std::string& where = value.node.where;
  const json theirs = to_json(value.node);
  if (chatlearn::is_no(theirs) && !ours.starts_with("algorithm.kl_")) return "";
  if (const std::optional<std::string> of_rows = derive_rows(ours, value)) return *of_rows;
  if (ours == "train.lr_schedule" || ours == "train.lr_minimum_ratio") return schedule(ours, value.node);
  if (ours == "algorithm.loss_type") return recipe_ == "dpo" && theirs == true ? settle(ours, "ipo", where) : "";
  if (ours == "algorithm.beta") {
    const bool of_pairs = value.name == "dpo_weight";
    return of_pairs == (recipe_ == "dpo" || online_dpo_) && recipe_ != "ppo" ? settle(ours, theirs, where) : "";
  }
  if (ours == "algorithm.kl_target" || ours == "algorithm.kl_horizon") {
    const std::vector<const ConfigNode*> fixed = all_of("fix_kl_coef");
    const bool adapts = std::ranges::any_of(fixed, [](const ConfigNode* node) { return to_json(*node) == false; });
    if (!adapts || value.name == "fix_kl_coef") return adapts ? ours : "";
    return settle(ours, theirs, where);
  }
  if (ours.ends_with("chat_template_kwargs")) return settle(ours, {{"enable_thinking", theirs}}, where);
  if (ours.find(".lora.") != std::string::npos) {
    const auto enabled = std::ranges::any_of(source_.models, [&](const Model& each) {
      return model_name(each) == model && each.is_true("lora.enable_lora");
    });
    if (!enabled) return "";
    return settle(ours, value.name == "lora.enable_lora" ? json(lora_rank(model)) : theirs, where);
  }
  if (ours == "recipe") return settle(ours, recipe_, where);
  if (ours == "placement" || ours == "devices" || ours == "tp" || ours == "pp" || ours == "ep" || ours == "cp" ||
      ours == "zero")
    return current_ == nullptr || std::ranges::find(ours_, current_, &Ours::second) != ours_.end() ? "placement" : "";
  return "";
}

}  // namespace

ChatLearnConfig from_chatlearn(const fs::path& path) {
  return Translation(chatlearn::read_source(path), path.string()).made();
}

}  // namespace collimate::recipe

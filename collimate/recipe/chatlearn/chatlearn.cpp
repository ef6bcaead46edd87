#include "collimate/recipe/chatlearn/chatlearn.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
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

// Whether a key is as good as left out.
bool is_no(const json& value) { return value.is_null() || value == "" || value == false || value == json::array(); }

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
    for (const Value& value : source_.runtime) translate("runtime", "runtime", "", value);
    for (const bool trainers : {false, true})  // whose path, rate and lengths win
      for (const Model& model : source_.models)
        if (trains(model) == trainers) translate_model(model);
    const nlohmann::ordered_json where = placed(source_, ours_);
    for (const auto& [key, value] : where.items()) set(key, value, path_);
    return std::move(config_);
  }

 private:
  // The engine that a model names, or the flow whose models there are.
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

  // Our models, by the names that the recipe's page has for them.
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
    return online_dpo_ || (coefficient != nullptr && to_json(*coefficient) != 0);
  }

  static bool trains(const Model& model) {
    return model.role == Role::kPolicyTrainer || model.role == Role::kValueTrainer;
  }

  void translate_model(const Model& model) {
    const std::string section(model.role ? chatlearn::name_of(*model.role) : "");
    const std::string named = model_name(model);
    for (const Value& value : model.values) translate(section, model.name, named, value);
  }

  // The key of `models` that a model's path and adapters go to; "" where this recipe has none of it.
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

  void translate(const std::string& section, const std::string& shown, const std::string& model, const Value& value) {
    if (value.name == "model_config_file" || value.name == "config_dir" || value.name == "args_dict") return;  // read
    const json theirs = to_json(value.node);
    ChatLearnKey key{value.node.where, fmt::format("{}.{}", shown, value.name), theirs.dump(), "", ""};
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
        key.ours = derive(ours, value, section, model);
      } else if (!converted.is_null()) {
        set(ours, converted, value.node.where);
        key.ours = fmt::format("{}: {}", ours, converted.dump());
      }
    }
    config_.keys.push_back(std::move(key));
  }

  // Sets what another key has a part in, by our key; returns "key: value", or the key alone where the placement has it.
  std::string derive(const std::string& ours, const Value& value, const std::string& section, const std::string& model);

  std::string settle(const std::string& ours, const json& value, const std::string& where) {
    set(ours, value, where);
    return fmt::format("{}: {}", ours, value.dump());
  }

  // A number of theirs, which more than one section may have.
  int64_t number(std::string_view name, int64_t otherwise) const {
    for (const ConfigNode* found : all_of(name))
      if (const json value = to_json(*found); value.is_number_integer()) return value.get<int64_t>();
    return otherwise;
  }
  std::vector<const ConfigNode*> all_of(std::string_view name) const {
    std::vector<const ConfigNode*> found;
    if (const ConfigNode* node = source_.find(name)) found.push_back(node);
    for (const Model& each : source_.models)
      if (const ConfigNode* node = each.find(name)) found.push_back(node);
    return found;
  }
  // The data's files; of those to train on also their weights, where there are some.
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
      list[i] = {{"path", list[i]},
                 {"weight", weight.is_string() ? std::stod(weight.get<std::string>()) : weight.get<double>()}};
    }
    return settle(ours, list.is_array() && list.size() == 1 ? list[0] : list, node.where);
  }
  int64_t samples_per_prompt() const {
    return number("num_inference_per_prompt", number("n", number("train_to_compare_num_responses", 1)));
  }
  int64_t rows_per_update() const { return number("train_global_batch_size", number("train_micro_batch_size", 2)); }
  int64_t episode_samples() const { return number("sample_per_episode", 1000); }

  void set(const std::string& path, const json& value, const std::string& where) {
    ConfigNode* node = &config_.root;
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      node->kind = ConfigNode::Kind::kMap;
      if (node->where.empty()) node->where = where;
      node = &node->child(path.substr(begin, end - begin));
      begin = end + 1;
    }
    *node = base::from_json(value, where);
  }

  const Source source_;
  const std::string path_;
  std::string recipe_;
  bool online_dpo_ = false, rollouts_ = true;
  std::vector<std::pair<std::string, const Model*>> ours_;
  ChatLearnConfig config_;
};

std::string Translation::derive(const std::string& ours, const Value& value, const std::string& section,
                                const std::string& model) {
  const std::string& where = value.node.where;
  const json theirs = to_json(value.node);
  if (ours == "run.iterations") {
    const int64_t updates = (episode_samples() + rows_per_update() - 1) / rows_per_update();
    const int64_t of_rows = updates * number("num_training_epoch", 1);
    return settle(ours, rollouts_ ? theirs.get<int64_t>() : theirs.get<int64_t>() * of_rows, where);
  }
  if (!rollouts_ && (ours == "rollout.prompts_per_iteration" || ours == "train.ppo_epochs")) return "run.iterations";
  if (ours == "rollout.prompts_per_iteration")
    return settle(ours, std::max<int64_t>(1, theirs.get<int64_t>() / samples_per_prompt()), where);
  if (ours == "train.ppo_epochs") return settle(ours, theirs, where);
  if (ours == "data.train" || ours == "data.eval") return is_no(theirs) ? "" : files(ours, value.node);
  if (ours == "data.max_tokens") return rollouts_ ? "" : settle(ours, theirs, where);
  if (ours == "train.samples_per_update" && !is_no(theirs))  // of pairs both rows count
    return settle(ours, rollouts_ ? theirs.get<int64_t>() : 2 * theirs.get<int64_t>(), where);
  if (ours == "rollout.samples_per_prompt" && rollouts_) return settle(ours, samples_per_prompt(), where);
  if (ours == "rollout.max_batch_sequences" && rollouts_ && theirs.is_number() && theirs > 0 && section == "policy")
    return settle(ours, theirs, where);
  if (ours == "rollout.prompt_tokens" && rollouts_ && section == "policy") {
    const int64_t added = number("max_new_tokens", number("new_token_limit", 0));
    return added > 0 && theirs > added ? settle(ours, theirs.get<int64_t>() - added, where) : "";
  }
  if (ours == "train.lr_minimum_ratio") {
    for (const char* name : {"lr", "optimizer.lr"})
      if (const ConfigNode* rate = source_.of(Role::kPolicyTrainer)->find(name); rate != nullptr)
        return settle(ours, theirs.get<double>() / to_json(*rate).get<double>(), where);
    return "";
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
    if (value.name != "lora.enable_lora") return settle(ours, theirs, where);
    return ours;
  }
  if (ours == "recipe") return settle(ours, recipe_, where);
  if (ours == "placement" || ours == "devices" || ours == "tp" || ours == "pp" || ours == "ep" || ours == "cp" ||
      ours == "zero")
    return is_no(theirs) ? "" : "placement";
  return "";
}

}  // namespace

bool is_chatlearn(const ConfigNode& root) {
  if (root.find("recipe") != nullptr || root.find("preset") != nullptr || root.find("models") == nullptr) return false;
  return std::ranges::any_of(std::initializer_list<const char*>{"runtime", "runtime_args", "rlhf"},
                             [&](const char* key) { return root.find(key) != nullptr; });
}

ChatLearnConfig from_chatlearn(const ConfigNode& root, const fs::path& path) {
  return Translation(chatlearn::read_source(root, path), path.string()).made();
}

std::vector<std::string> chatlearn_lines(const fs::path& path) {
  std::vector<std::string> lines;
  const ConfigNode root = base::load_config(path).root;
  if (!is_chatlearn(root)) return lines;
  for (const ChatLearnKey& key : from_chatlearn(root, path).keys) {
    const std::string remark = key.remark.empty() ? "" : fmt::format(" ({})", key.remark);
    const std::string theirs = fmt::format("{} {}: {}", key.where, key.name, key.value);
    const bool off = is_no(json::parse(key.value));
    lines.push_back(!key.ours.empty() ? fmt::format("{} -> {}{}", theirs, key.ours, remark)
                    : off             ? fmt::format("{} -> nothing", theirs)
                                      : fmt::format("warning: {} has no meaning here{}", theirs, remark));
  }
  return lines;
}

}  // namespace collimate::recipe

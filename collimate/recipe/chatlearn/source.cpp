#include "collimate/recipe/chatlearn/source.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"

namespace collimate::recipe::chatlearn {
namespace {

namespace fs = std::filesystem;
using base::ConfigNode;

const ConfigNode* value_of(const std::vector<Value>& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &Value::name);
  return found == values.end() ? nullptr : &found->node;
}

void flatten(const ConfigNode& node, const std::string& path, std::vector<Value>& into) {
  if (node.kind != ConfigNode::Kind::kMap) {
    into.push_back({path, node});
    return;
  }
  for (size_t i = 0; i < node.keys.size(); ++i)
    flatten(node.children[i], path.empty() ? node.keys[i] : fmt::format("{}.{}", path, node.keys[i]), into);
}

std::vector<Value> flat(const ConfigNode& node) {
  std::vector<Value> values;
  flatten(node, "", values);
  return values;
}

const ConfigNode& expect_section(const ConfigNode& node, const std::string& name) {
  if (node.kind == ConfigNode::Kind::kMap || node.kind == ConfigNode::Kind::kNull) return node;
  throw base::InputError(base::expectation(node.where, fmt::format("{} to be a mapping", name), node.description()));
}

// The entries of a key that holds one text or a list of them.
std::vector<const ConfigNode*> entries(const ConfigNode* node) {
  std::vector<const ConfigNode*> list;
  if (node == nullptr || node->kind == ConfigNode::Kind::kNull) return list;
  if (node->kind != ConfigNode::Kind::kList) return {node};
  for (const ConfigNode& each : node->children) list.push_back(&each);
  return list;
}

// Later files win over earlier ones, and the file's own keys over all of them. `depth` ends what includes itself.
ConfigNode with_includes(const ConfigNode& own, const fs::path& directory, int depth = 0) {
  constexpr int kDeepest = 16;
  const ConfigNode* includes = own.find("includes");
  if (depth > kDeepest)
    throw base::InputError(
        base::expectation(includes->where, "includes without a circle", "files that include each other"));
  ConfigNode merged{ConfigNode::Kind::kMap, "", false, own.where, {}, {}};
  for (const ConfigNode* each : entries(includes)) {
    const fs::path file = directory / each->text;
    if (!fs::is_regular_file(file))
      throw base::InputError(base::expectation(each->where, "a file of a configuration", "no file " + file.string()));
    merge(merged, with_includes(base::load_config(file).root, file.parent_path(), depth + 1));
  }
  for (size_t i = 0; i < own.keys.size(); ++i)
    if (own.keys[i] != "includes") merge(merged.child(own.keys[i]), ConfigNode(own.children[i]));
  return merged;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool says(const ConfigNode* node, const nlohmann::json& value) { return node != nullptr && to_json(*node) == value; }

// Models have the names that ChatLearn's examples give them: ppo_policy, policy_trainer, reference, value_trainer.
std::optional<Role> role_of(const Model& model) {
  const bool trains = has(model.name, "train") || has(model.name, "ppo") || model.is_true("trainable");
  if (has(model.name, "ref")) return Role::kReference;
  if (has(model.name, "value") || has(model.name, "critic")) return trains ? Role::kValueTrainer : Role::kValue;
  if (has(model.name, "reward")) return model.number({"num_gpu", "num_device"}, 0) == 0 ? Role::kRule : Role::kReward;
  if (has(model.name, "policy") || has(model.name, "actor")) return trains ? Role::kPolicyTrainer : Role::kPolicy;
  return std::nullopt;
}

Model read_model(const std::string& name, const ConfigNode& node, const fs::path& directory) {
  expect_section(node, fmt::format("models.{}", name));
  ConfigNode all{ConfigNode::Kind::kMap, "", false, node.where, {}, {}};
  if (const ConfigNode* file = node.find("model_config_file"); file != nullptr && !file->text.empty()) {
    const ConfigNode* folder = node.find("config_dir");
    const fs::path path = (folder == nullptr || folder->text.empty() ? directory : fs::path(folder->text)) / file->text;
    if (!fs::is_regular_file(path))
      throw base::InputError(
          base::expectation(file->where, "a file with the model's arguments", "no file " + path.string()));
    merge(all, with_includes(base::load_config(path).root, path.parent_path()));
  }
  merge(all, ConfigNode(node));
  if (const ConfigNode* arguments = node.find("args_dict");
      arguments != nullptr && arguments->kind == ConfigNode::Kind::kMap) {
    for (size_t i = 0; i < arguments->keys.size(); ++i)
      merge(all.child(arguments->keys[i]), ConfigNode(arguments->children[i]));
    all.child("args_dict") = {};
  }
  Model model{name, {}, flat(all)};
  model.role = role_of(model);
  return model;
}

}  // namespace

const ConfigNode* Model::find(std::string_view value) const { return value_of(values, value); }

int64_t Model::number(std::initializer_list<std::string_view> names, int64_t otherwise) const {
  for (const std::string_view each : names) {
    const ConfigNode* found = find(each);
    if (found == nullptr || found->kind == ConfigNode::Kind::kNull) continue;
    const nlohmann::json value = to_json(*found);
    if (value.is_number_integer()) return value.get<int64_t>();
    throw base::InputError(
        base::expectation(found->where, fmt::format("{} to be a whole number", each), found->description()));
  }
  return otherwise;
}

bool Model::is_true(std::string_view value) const { return says(find(value), true); }

const ConfigNode* Source::find(std::string_view value) const { return value_of(runtime, value); }

const Model* Source::of(Role role) const {
  const auto found = std::ranges::find(models, role, &Model::role);
  return found == models.end() ? nullptr : &*found;
}

Source read_source(const ConfigNode& own, const fs::path& path) {
  const fs::path directory = path.parent_path();
  const ConfigNode root = with_includes(own, directory);
  Source source;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const std::string& key = root.keys[i];
    const ConfigNode& section = expect_section(root.children[i], key);
    if (key == "runtime_env" || key == "env_args") {
      source.environment = flat(section);
    } else if (key == "runtime" || key == "rlhf" || key == "runtime_args") {
      source.runtime = flat(section);
    } else if (key == "models") {
      for (size_t m = 0; m < section.keys.size(); ++m)
        source.models.push_back(read_model(section.keys[m], section.children[m], directory));
    } else {
      throw base::InputError(base::expectation(section.where, "runtime_env, models and runtime, as ChatLearn has them",
                                               fmt::format("\"{}\"", key), "leaving it out"));
    }
  }
  return source;
}

std::string_view name_of(Role role) {
  constexpr std::string_view kNames[] = {"policy", "policy_trainer", "reference", "reward",
                                         "value",  "value_trainer",  "rule"};
  return kNames[static_cast<size_t>(role)];
}

}  // namespace collimate::recipe::chatlearn

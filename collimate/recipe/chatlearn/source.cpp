#include "collimate/recipe/chatlearn/source.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collimate/base/at.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"
#include "collimate/base/read_file.h"

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
  if (node.kind != ConfigNode::Kind::kNull) flatten(node, "", values);
  return values;
}

const ConfigNode& expect_section(const ConfigNode& node, const std::string& name) {
  if (node.kind == ConfigNode::Kind::kMap || node.kind == ConfigNode::Kind::kNull) return node;
  throw base::InputError(base::expectation(node.where, fmt::format("{} to be a mapping", name), node.description()));
}

// Returns the entries of a key that holds one text or a list of them.
std::vector<const ConfigNode*> entries(const ConfigNode* node) {
  std::vector<const ConfigNode*> list;
  if (node == nullptr || node->kind == ConfigNode::Kind::kNull) return list;
  if (node->kind != ConfigNode::Kind::kList) return {node};
  for (const ConfigNode& each : node->children) list.push_back(&each);
  return list;
}

// Returns the keys of a file with those of the files that it includes. Later files win over earlier ones, and the
// file's own keys over all of them. All files lie in the directory of the first one. `depth` ends files that include
// themselves.
ConfigNode with_includes(const ConfigNode& own, const fs::path& directory, int depth = 0) {
  constexpr int kDeepest = 16;
  const ConfigNode* includes = own.find("includes");
  ConfigNode merged{ConfigNode::Kind::kMap, "", false, own.where, {}, {}};
  for (const ConfigNode* each : entries(includes)) {
    const fs::path file = directory / each->text;
    if (depth == kDeepest)
      throw base::InputError(
          base::expectation(each->where, "includes without a circle", "files that include each other"));
    if (!fs::is_regular_file(file))
      throw base::InputError(base::expectation(each->where, "a file of a configuration", "no file " + file.string()));
    merge(merged, with_includes(read_yaml(file), directory, depth + 1));
  }
  for (size_t i = 0; i < own.keys.size(); ++i)
    if (own.keys[i] != "includes") merge(merged.child(own.keys[i]), ConfigNode(own.children[i]));
  return merged;
}

// Returns the value at "a.b" of a tree; null where there is none.
const ConfigNode* value_at(const ConfigNode& tree, const std::string& path) {
  const ConfigNode* found = &tree;
  for (const std::string& part : parts(path, '.')) found = found == nullptr ? nullptr : found->find(part);
  return found;
}

// Replaces references by what they stand for. `depth` ends references that lead to each other.
void resolve(ConfigNode& node, const ConfigNode& tree, int depth = 0);

// Returns what one reference, the text between ${ and }, stands for.
ConfigNode resolved(const std::string& reference, const ConfigNode& node, const ConfigNode& tree, int depth) {
  constexpr int kDeepest = 16;
  constexpr std::string_view kOmegaConf = "oc.env:";
  if (const ConfigNode* found = value_at(tree, reference); found != nullptr && depth < kDeepest) {
    ConfigNode copy = *found;
    resolve(copy, tree, depth + 1);
    copy.where = node.where;
    return copy;
  }
  const bool omega = reference.starts_with(kOmegaConf);
  const std::string text = omega ? reference.substr(kOmegaConf.size()) : reference;
  const size_t divider = text.find(omega ? ',' : ':');
  const char* variable = std::getenv(text.substr(0, divider).c_str());
  const std::string value = variable != nullptr            ? variable
                            : divider == std::string::npos ? "None"
                                                           : text.substr(divider + 1);
  if (value == "None" || value == "null") return {ConfigNode::Kind::kNull, "", false, node.where, {}, {}};
  return {ConfigNode::Kind::kScalar, value, false, node.where, {}, {}};
}

void resolve(ConfigNode& node, const ConfigNode& tree, int depth) {
  for (ConfigNode& child : node.children) resolve(child, tree, depth);
  if (node.kind != ConfigNode::Kind::kScalar) return;
  for (size_t begin = node.text.find("${"); begin != std::string::npos; begin = node.text.find("${", begin)) {
    const size_t end = node.text.find('}', begin);
    if (end == std::string::npos)
      throw base::InputError(base::expectation(node.where, "a } behind ${", node.description()));
    const ConfigNode value = resolved(node.text.substr(begin + 2, end - begin - 2), node, tree, depth);
    if (begin == 0 && end + 1 == node.text.size()) {
      node = value;
      return;
    }
    node.text.replace(begin, end + 1 - begin, value.text);
    begin += value.text.size();
  }
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool says(const ConfigNode* node, const nlohmann::json& value) { return node != nullptr && to_json(*node) == value; }

// Returns the role of a model by the names of ChatLearn's examples: ppo_policy, policy_trainer, reference,
// value_trainer.
std::optional<Role> role_of(const Model& model) {
  const std::string name = base::lower_case(model.name);
  const bool trains = has(name, "train") || has(name, "ppo") || model.is_true("trainable");
  if (has(name, "reward")) return model.number({"num_gpu", "num_device"}, 0, 0) == 0 ? Role::kRule : Role::kReward;
  if (has(name, "value") || has(name, "critic")) return trains ? Role::kValueTrainer : Role::kValue;
  if (name.starts_with("ref") || has(name, "_ref")) return Role::kReference;
  if (has(name, "policy") || has(name, "actor")) return trains ? Role::kPolicyTrainer : Role::kPolicy;
  return std::nullopt;
}

// The file of arguments wins over the model's own section in these keys.
constexpr const char* kOfTheFile[] = {"tensor_model_parallel_size", "pipeline_model_parallel_size",
                                      "expert_model_parallel_size", "zero_size", "fsdp_size"};

Model read_model(const std::string& name, const ConfigNode& node, const ConfigNode& tree, const fs::path& directory) {
  expect_section(node, fmt::format("models.{}", name));
  ConfigNode all{ConfigNode::Kind::kMap, "", false, node.where, {}, {}};
  if (const ConfigNode* file = node.find("model_config_file"); file != nullptr && !file->text.empty()) {
    const ConfigNode* folder = node.find("config_dir");
    const fs::path path = (folder == nullptr || folder->text.empty() ? directory : fs::path(folder->text)) / file->text;
    if (!fs::is_regular_file(path))
      throw base::InputError(
          base::expectation(file->where, "a file with the model's arguments", "no file " + path.string()));
    all = with_includes(read_yaml(path), directory);
    resolve(all, tree);
  }
  const ConfigNode of_the_file = all;
  merge(all, ConfigNode(node));
  for (const char* key : kOfTheFile)
    if (const ConfigNode* value = of_the_file.find(key); value != nullptr && value->kind == ConfigNode::Kind::kScalar)
      all.child(key) = *value;
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

int64_t Model::number(std::initializer_list<std::string_view> names, int64_t otherwise, int64_t least) const {
  for (const std::string_view each : names)
    if (const ConfigNode* found = find(each); found != nullptr && found->kind != ConfigNode::Kind::kNull)
      return whole(*found, each, least);
  return otherwise;
}

bool Model::is_true(std::string_view value) const { return says(find(value), true); }

const ConfigNode* Source::find(std::string_view value) const { return value_of(runtime, value); }

const Model* Source::of(Role role) const {
  const auto found = std::ranges::find(models, role, &Model::role);
  return found == models.end() ? nullptr : &*found;
}

ConfigNode read_yaml(const fs::path& path) { return base::parse_yaml(base::read_file(path), path.string(), true); }

int64_t whole(const ConfigNode& node, std::string_view name, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const nlohmann::json value = to_json(node);
  if (value.is_number_integer() && value >= least && value <= kMost) return value.get<int64_t>();
  throw base::InputError(base::expectation(
      node.where, fmt::format("{} to be a whole number of at least {}", name, least), node.description()));
}

Source read_source(const fs::path& path) {
  const fs::path directory = path.parent_path();
  ConfigNode root = with_includes(read_yaml(path), directory);
  const ConfigNode tree = root;
  resolve(root, tree);
  const bool has_runtime = root.find("runtime") != nullptr || root.find("runtime_args") != nullptr;
  Source source;
  for (size_t i = 0; i < root.keys.size(); ++i) {
    const std::string& key = root.keys[i];
    if (key == "runtime_env" || key == "env_args") {
      source.environment = flat(expect_section(root.children[i], key));
    } else if (key == "runtime" || key == "runtime_args" || (key == "rlhf" && !has_runtime)) {
      source.runtime = flat(expect_section(root.children[i], key));
    } else if (key == "models") {
      const ConfigNode& models = expect_section(root.children[i], key);
      for (size_t m = 0; m < models.keys.size(); ++m)
        source.models.push_back(read_model(models.keys[m], models.children[m], tree, directory));
    } else {
      source.others.push_back({key, root.children[i]});
    }
  }
  return source;
}

std::string_view name_of(Role role) {
  constexpr std::string_view kNames[] = {"policy", "policy_trainer", "reference", "reward",
                                         "value",  "value_trainer",  "rule"};
  return base::at(kNames, role);
}

}  // namespace collimate::recipe::chatlearn

// This file gives a ChatLearn YAML as `load` and `check` have it: what its recipe does not read is left out and said.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/section.h"
#include "collimate/recipe/chatlearn/chatlearn.h"
#include "collimate/recipe/chatlearn/rows.h"
#include "collimate/recipe/chatlearn/source.h"
#include "collimate/recipe/config.h"
#include "collimate/recipe/list.h"
#include "collimate/recipe/registry.h"
#include "collimate/recipe/unread.h"

namespace collimate::recipe {
namespace {

// Takes "a.b" out of a tree.
void remove(base::ConfigNode& root, const std::string& path) {
  base::ConfigNode* node = &root;
  const std::vector<std::string> names = base::split_path(path);
  for (const std::string& name : names) {
    const auto found = std::ranges::find(node->keys, name);
    if (found == node->keys.end()) return;
    const auto at = std::distance(node->keys.begin(), found);
    if (&name == &names.back()) {
      node->children.erase(node->children.begin() + at);
      node->keys.erase(found);
    } else {
      node = &base::at(node->children, at);
    }
  }
}

}  // namespace

bool is_chatlearn(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  try {
    const base::ConfigNode root = chatlearn::read_yaml(path);
    const auto has = [&](const char* key) { return root.find(key) != nullptr; };
    if (has("recipe") || has("preset")) return false;
    const bool runtime = has("runtime") || has("runtime_args") || has("rlhf"), models = has("models");
    return (runtime && models) || ((runtime || models) && has("includes"));
  } catch (const base::InputError&) {
    return false;  // the error is told where it is read as a config of ours
  }
}

ChatLearnConfig from_chatlearn(const std::filesystem::path& path, const std::vector<std::string>& sets) {
  ChatLearnConfig made = from_chatlearn(path);
  const Config schema;
  base::ConfigSource source{made.root};
  base::override_values(source.root, sets, &schema);
  std::optional<Config> config;
  std::optional<Plan> plan;
  try {
    config = load_source(source, path.string());
    plan = make_plan(*config, module_registry());
  } catch (const base::InputError&) {
    return made;  // the error is told where the run is planned
  }
  for (ChatLearnKey& key : made.keys) {
    if (key.option.empty() || key.option == "recipe" || key.option.starts_with("models.") ||
        !is_unread(*config, *plan, key.option))
      continue;
    remove(made.root, key.option);
    key.ours = key.option = "";
    key.remark = fmt::format("recipe {} does not read it", config->recipe.get());
  }
  return made;
}

std::vector<std::string> chatlearn_lines(const std::filesystem::path& path, const std::vector<std::string>& sets) {
  std::vector<std::string> lines;
  if (!is_chatlearn(path)) return lines;
  for (const ChatLearnKey& key : from_chatlearn(path, sets).keys) {
    const std::string remark = key.remark.empty() ? "" : fmt::format(" ({})", key.remark);
    const std::string theirs = fmt::format("{} {}: {}", key.where, key.name, key.value);
    lines.push_back(!key.ours.empty() ? fmt::format("{} -> {}{}", theirs, key.ours, remark)
                    : chatlearn::is_no(nlohmann::json::parse(key.value))
                        ? fmt::format("{} -> nothing", theirs)
                        : fmt::format("warning: {} has no meaning here{}", theirs, remark));
  }
  return lines;
}

}  // namespace collimate::recipe

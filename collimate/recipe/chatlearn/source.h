#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/recipe/chatlearn/rows.h"

namespace collimate::recipe::chatlearn {

// One value of a section, by its path there: "optimizer.lr". A list is one value.
struct Value {
  std::string name;
  base::ConfigNode node;
};

// A model of a YAML with the keys of its own and those of the file that model_config_file names, of which its own win.
struct Model {
  std::string name;          // "ppo_policy"
  std::optional<Role> role;  // nothing for what no recipe has
  std::vector<Value> values;

  const base::ConfigNode* find(std::string_view value) const;
  // A whole number that one of the names has; `otherwise` where none does.
  int64_t number(std::initializer_list<std::string_view> names, int64_t otherwise) const;
  bool is_true(std::string_view value) const;
};

struct Source {
  std::vector<Value> environment, runtime;
  std::vector<Model> models;

  const base::ConfigNode* find(std::string_view runtime_value) const;
  const Model* of(Role role) const;  // null for none
};

// Reads all files of a YAML. InputError naming the place of what has another form than ChatLearn's.
Source read_source(const base::ConfigNode& root, const std::filesystem::path& path);

// "policy", "policy_trainer", …: the sections of rows.
std::string_view name_of(Role role);

}  // namespace collimate::recipe::chatlearn

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

// A model of a YAML with the keys of its own and those of the file that model_config_file names: its own win, but for
// its layout, as in ChatLearn.
struct Model {
  std::string name;          // "ppo_policy"
  std::optional<Role> role;  // nothing for what no recipe has
  std::vector<Value> values;

  const base::ConfigNode* find(std::string_view value) const;
  // A whole number of at least `least` that one of the names has; `otherwise` where none does, or is null. InputError
  // for any other value.
  int64_t number(std::initializer_list<std::string_view> names, int64_t otherwise, int64_t least = 1) const;
  bool is_true(std::string_view value) const;
};

struct Source {
  std::vector<Value> environment, runtime, others;  // others: of sections that ChatLearn does not read
  std::vector<Model> models;

  const base::ConfigNode* find(std::string_view runtime_value) const;
  const Model* of(Role role) const;  // null for none
};

// Reads a YAML without what it refers to; a key that is written twice has its last value.
base::ConfigNode read_yaml(const std::filesystem::path& path);
// Reads all files of a YAML. `${a.b}` is the value that the file has there, or, as `${NAME:default}`, an environment
// variable; nothing where there is neither. InputError naming the place of what has another form than ChatLearn's.
Source read_source(const std::filesystem::path& path);

// A whole number of at least `least`, of a key that is not null. InputError for any other value.
int64_t whole(const base::ConfigNode& node, std::string_view name, int64_t least = 1);

// "policy", "policy_trainer", …: the sections of rows.
std::string_view name_of(Role role);

}  // namespace collimate::recipe::chatlearn

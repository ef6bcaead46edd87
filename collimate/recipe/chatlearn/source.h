#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"
#include "collimate/recipe/chatlearn/rows.h"

namespace collimate::recipe::chatlearn {

// Holds one value of a section with its path there: "optimizer.lr". A list is one value.
struct Value {
  std::string name;
  base::ConfigNode node;
};

// Holds a model of a YAML with the keys of its own and those of the file that model_config_file names. Its own keys
// win, but for its layout, as in ChatLearn.
struct Model {
  std::string name;          // "ppo_policy"
  std::optional<Role> role;  // nothing for what no recipe has
  std::vector<Value> values;

  const base::ConfigNode* find(std::string_view value) const;
  // Returns the whole number, of at least `least`, that the first of the names has that is there and not null;
  // `otherwise` where none is. Throws InputError for any other value.
  int64_t number(std::initializer_list<std::string_view> names, int64_t otherwise, int64_t least = 1) const;
  bool is_true(std::string_view value) const;
};

struct Source {
  std::vector<Value> environment, runtime, others;  // others: of sections that ChatLearn does not read
  std::vector<Model> models;

  const base::ConfigNode* find(std::string_view runtime_value) const;
  const Model* of(Role role) const;  // null for none
};

// Reads a YAML file without the files and values that it refers to. A key that is written twice has its last value.
base::ConfigNode read_yaml(const std::filesystem::path& path);
// Reads all files of a YAML. A reference `${a.b}` becomes the value that the file has there, or, as `${NAME:default}`,
// an environment variable; null where there is neither. Throws InputError naming the place of what has another form
// than ChatLearn's.
Source read_source(const std::filesystem::path& path);

// Returns the whole number of at least `least` that a key has, which is not null. Throws InputError for any other
// value.
int64_t whole(const base::ConfigNode& node, std::string_view name, int64_t least = 1);

// Returns the section that rows call a role by: "policy", "policy_trainer", ….
std::string_view name_of(Role role);

}  // namespace collimate::recipe::chatlearn

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// One key of a ChatLearn YAML, and what it comes to here.
struct ChatLearnKey {
  std::string where;   // "ppo.yaml:12"
  std::string name;    // "runtime.num_episode", "policy.max_new_tokens"
  std::string value;   // as written
  std::string ours;    // "run.iterations: 200"; "" where it has no meaning here
  std::string remark;  // how they differ, or why it has none; "" where there is nothing to say
};

struct ChatLearnConfig {
  base::ConfigNode root;  // a config of a recipe here, of which each value has the place that it was read from
  std::vector<ChatLearnKey> keys;
};

// Whether a YAML is one of ChatLearn's: `runtime` (or `rlhf`, `runtime_args`) beside `models`.
bool is_chatlearn(const base::ConfigNode& root);

// Translates a ChatLearn YAML of version 1.0.3 (read there by chatlearn/utils/arguments.py) or of its main branch
// (chatlearn/configs), with the files that `includes` and `model_config_file` name. `path`: the file, beside which
// these are. InputError for a file that is missing, and where no recipe has the models that there are.
ChatLearnConfig from_chatlearn(const base::ConfigNode& root, const std::filesystem::path& path);

// Does so with a file and gives a line for each key, of which those without a meaning here begin with "warning: ";
// none where the file is no ChatLearn YAML.
std::vector<std::string> chatlearn_lines(const std::filesystem::path& path);

}  // namespace collimate::recipe

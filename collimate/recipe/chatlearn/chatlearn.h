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
  std::string value;   // JSON
  std::string option;  // of ours that is set: "run.iterations"; "" where none is
  std::string ours;    // "run.iterations: 30"; "" where it has no meaning here
  std::string remark;  // how they differ, or why it has none; "" where there is nothing to say
};

struct ChatLearnConfig {
  base::ConfigNode root;  // a config of a recipe here, of which each value has the place that it was read from
  std::vector<ChatLearnKey> keys;
};

// Whether a file is a YAML of ChatLearn's: `models`, `runtime` (or `rlhf`, `runtime_args`) or one of them beside
// `includes`, and no recipe of ours. False for what is no YAML.
bool is_chatlearn(const std::filesystem::path& path);

// Translates a ChatLearn YAML of version 1.0.3 (read there by chatlearn/utils/arguments.py) or of its main branch
// (chatlearn/configs), with the files that `includes` and `model_config_file` name beside it. InputError, naming file
// and line, for a file that is missing, for a value of another form than ChatLearn's, and where no recipe has the
// models that there are.
ChatLearnConfig from_chatlearn(const std::filesystem::path& path);

// Does so, and leaves out the options that the recipe does not read with these `sets`.
ChatLearnConfig from_chatlearn(const std::filesystem::path& path, const std::vector<std::string>& sets);

// Gives a line for each key of that, of which those without a meaning here begin with "warning: "; none where the file
// is no ChatLearn YAML.
std::vector<std::string> chatlearn_lines(const std::filesystem::path& path, const std::vector<std::string>& sets);

}  // namespace collimate::recipe

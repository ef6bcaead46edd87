#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// Says what one key of a ChatLearn YAML comes to here.
struct ChatLearnKey {
  std::string where;   // "ppo.yaml:12"
  std::string name;    // "runtime.num_episode", "policy.max_new_tokens"
  std::string value;   // JSON
  std::string option;  // our option that is set: "run.iterations"; "" where none is
  std::string ours;    // "run.iterations: 30"; "" where it has no meaning here
  std::string remark;  // how both differ, or why the key has no meaning; "" where there is nothing to say
};

struct ChatLearnConfig {
  base::ConfigNode root;  // a config of ours, in which each value has the place that it was read from
  std::vector<ChatLearnKey> keys;
};

// Returns whether a file is a YAML of ChatLearn's. It has `models` and `runtime` (or `rlhf`, `runtime_args`), or one of
// them beside `includes`, and no recipe or preset of ours. False for a file that is no YAML.
bool is_chatlearn(const std::filesystem::path& path);

// Translates a ChatLearn YAML of version 1.0.3 (read there by chatlearn/utils/arguments.py) or of its main branch
// (chatlearn/configs), with the files that `includes` and `model_config_file` name beside it. Throws InputError, naming
// file and line, for a file that is missing, for a value of another form than ChatLearn's, and where no recipe has the
// models of the YAML.
ChatLearnConfig from_chatlearn(const std::filesystem::path& path);

// Does so, and leaves out the options of which is_unread (recipe/unread.h) says with these `sets` that nothing reads
// them.
ChatLearnConfig from_chatlearn(const std::filesystem::path& path, const std::vector<std::string>& sets);

// Returns a line for each key of that translation. Lines of keys without a meaning here begin with "warning: ". Returns
// none where the file is no ChatLearn YAML.
std::vector<std::string> chatlearn_lines(const std::filesystem::path& path, const std::vector<std::string>& sets);

}  // namespace collimate::recipe

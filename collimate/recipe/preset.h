#pragma once

#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// Holds the constants with which another program computes an algorithm, pinned to its version: the names stay, and the
// values never change. They stand for defaults, so that a key of the config has the last word. Sizes of batches are not
// among them.
struct Preset {
  std::string name;    // "trl-grpo", as the key `preset` has it
  std::string source;  // "TRL 1.16, GRPOConfig"
  std::string recipe;
  std::string yaml;   // of the config: sections algorithm, rollout, train
  std::string notes;  // what still differs, "" for nothing that is known
};

const std::vector<Preset>& presets();
std::vector<std::string> preset_names();

// Returns the preset's values as a config, whose place errors call "preset NAME".
base::ConfigNode preset_values(const Preset& preset);

// Returns the text that `collimate help presets` prints.
std::string presets_text();

}  // namespace collimate::recipe

#pragma once

#include <string>

#include "collimate/base/config_node.h"

namespace collimate::base {

// YAML of a node in one line: `[1, 2]`, `{a: "x y"}`. Reads back as the same node; "${" in strings becomes "$${".
std::string flow_yaml(const ConfigNode& node);

// YAML of a map, one key a line, nested maps indented; lists of scalars in one line.
std::string block_yaml(const ConfigNode& map);

}  // namespace collimate::base

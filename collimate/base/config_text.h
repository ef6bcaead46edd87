#pragma once

#include <string>

#include "collimate/base/config_node.h"

namespace collimate::base {

// Returns the YAML of a node in one line: `[1, 2]`, `{a: "x y"}`. Reading it gives the same node; "${" in strings is
// written as "$${".
std::string flow_yaml(const ConfigNode& node);

// Returns the YAML of a map, one key per line. Nested maps are indented, and a list of scalars stays in one line.
std::string block_yaml(const ConfigNode& map);

}  // namespace collimate::base

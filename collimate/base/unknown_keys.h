#pragma once

#include <string>
#include <vector>

#include "collimate/base/section.h"

namespace collimate::base {

// One line for each key of `part` that `section`, which stands at `path`, does not have: where it was written, what
// was expected, what came, and what to write instead. That is, in this order: what the section says of the name
// (Section::section_remedy), a key of the same name elsewhere, the nearest key of the same section, the nearest
// elsewhere, the keys that there are. In the order written; empty where all keys are known. Values are not looked at.
std::vector<std::string> unknown_keys(const ConfigNode& part, const std::string& path, const Section& section);

}  // namespace collimate::base

#pragma once

#include <string>
#include <vector>

#include "collimate/base/section.h"

namespace collimate::base {

// Returns one line for each key of `part` that `section`, which stands at `path`, does not have: where it was written,
// what was expected, what came, and what to write instead. The last is the first of these that exists: what the section
// says of the name (Section::section_remedy), a key of the same name elsewhere, the nearest key of the same section,
// the nearest key elsewhere, the keys that the section has. The lines are in written order, and there are none when all
// keys are known. Values are not checked.
std::vector<std::string> unknown_keys(const ConfigNode& part, const std::string& path, const Section& section);

}  // namespace collimate::base

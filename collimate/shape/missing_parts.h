#pragma once

#include <string>

namespace collimate::shape {

// Returns what a decoder of that model_type needs and no block here has (block.h), worded to follow "needs"; empty for
// an unknown model_type.
std::string missing_parts(const std::string& model_type);

}  // namespace collimate::shape

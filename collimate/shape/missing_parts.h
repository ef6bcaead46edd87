#pragma once

#include <string>

namespace collimate::shape {

// Names what a decoder of that model_type needs and no block here has (block.h), as it stands behind "needs";
// empty for a model_type that is not known.
std::string missing_parts(const std::string& model_type);

}  // namespace collimate::shape

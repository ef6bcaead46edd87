#pragma once

#include <filesystem>
#include <string>

namespace collimate::base {

// The remedy of an error about a path that is not there: the path with one misspelt name put right, where such a one
// is there, in words for "try …"; else "".
std::string nearest_path(const std::filesystem::path& missing);

}  // namespace collimate::base

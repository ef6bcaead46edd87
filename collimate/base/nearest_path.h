#pragma once

#include <filesystem>
#include <string>

namespace collimate::base {

// The remedy of an error about a path that is not there: the path with one misspelt name put right, where such a one
// is there, in words for "try …"; else "".
std::string nearest_path(const std::filesystem::path& missing);

// The remedy of an error about a directory that lacks `file`: a directory in it that has one, in words for "try …";
// else
// "".
std::string directory_below(const std::filesystem::path& directory, const std::string& file);

}  // namespace collimate::base

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace collimate::base {

// The remedy of an error about a path that is not there: the path with one name put right that is misspelt, has another
// ending or is the beginning of a longer one, where such a one is there, in words for "try …"; else "".
std::string nearest_path(const std::filesystem::path& missing);

// The remedy for a file with one of these endings (".yaml"); where none is near it names some of those that are there,
// or a file of that name in a directory above one that is not there, or that directory, or the one from which a
// relative path is read.
std::string nearest_file(const std::filesystem::path& missing, const std::vector<std::string>& endings);

// The remedy of an error about a directory that lacks `file`: a directory in it that has one, in words for "try …";
// else
// "".
std::string directory_below(const std::filesystem::path& directory, const std::string& file);

}  // namespace collimate::base

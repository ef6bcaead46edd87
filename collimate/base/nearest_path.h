#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace collimate::base {

// Returns a remedy for an error about a missing path: an existing path that differs in one name, where the given name
// is misspelt, has another ending or is the beginning of a longer one. The text completes "try …" and is "" when
// there is no such path.
std::string nearest_path(const std::filesystem::path& missing);

// Returns the remedy for a missing file that should have one of these endings (".yaml"). This is the nearest path if
// there is one. If the directory is missing too, it is a file of that name in a directory above, or a note that there
// is no such directory. Otherwise it names files of the directory with such an ending, or, for a relative path without
// any, the directory from which the path is read.
std::string nearest_file(const std::filesystem::path& missing, const std::vector<std::string>& endings);

// Returns the remedy for an error about a directory that lacks `file`: a directory inside it that has one, in words
// that complete "try …", or "".
std::string directory_below(const std::filesystem::path& directory, const std::string& file);

}  // namespace collimate::base

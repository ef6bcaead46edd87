#pragma once

#include <filesystem>
#include <vector>

namespace collimate::host {

// These ask the file system about paths and follow links. They throw RunError, which names the path, where it cannot
// tell: for want of a permission, or because the disk failed.
bool path_exists(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);  // a regular one
bool is_directory(const std::filesystem::path& path);
// Return the paths in a directory, or all paths below it, in no particular order.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& directory);
std::vector<std::filesystem::path> paths_below(const std::filesystem::path& directory);

// Removes a file, or a directory with all that is in it, if it is there. Throws RunError as above.
void remove_path(const std::filesystem::path& path);

}  // namespace collimate::host

#pragma once

#include <string>
#include <vector>

namespace collimate::text {

// Returns the files that a path of data names, in the order in which they are read. A path may name a file; a
// directory, which stands for its data files, all of one format, by name, or for those that `datasets` lists in it
// (save_to_disk); or a pattern (* ? []), which stands for the files that match it, by name. Throws InputError, which
// says what is there, where the path names no file.
std::vector<std::string> data_files(const std::string& path);

}  // namespace collimate::text

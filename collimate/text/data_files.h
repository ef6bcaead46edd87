#pragma once

#include <string>
#include <vector>

namespace collimate::text {

// Files that a path of data names, in the order in which they are read: the file of that name; the data files of a
// directory, all of one format, by name, or those that `datasets` lists in it (save_to_disk); else the files that match
// it as a pattern
// (* ? []), by name. Throws InputError, which says what is there, where that is none.
std::vector<std::string> data_files(const std::string& path);

}  // namespace collimate::text

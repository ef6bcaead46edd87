#pragma once

#include <filesystem>

namespace collimate::host {

// Finds a file or directory of an installation: in the first directory of those in which the loader looks for the
// libraries of this code (its RPATH, LD_LIBRARY_PATH, the system's) that has one of that name. A program has this
// directory in its RPATH, as $ORIGIN/../lib/collimate or as it was linked, so that it finds its files where it finds
// its libraries, wherever both are moved. Empty when there is none.
std::filesystem::path beside_libraries(const std::filesystem::path& name);

}  // namespace collimate::host

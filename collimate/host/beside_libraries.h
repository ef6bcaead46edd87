#pragma once

#include <filesystem>
#include <string>

namespace collimate::host {

// Finds a file or directory of an installation: in the first directory of those in which the loader looks for the
// libraries of this code (its RPATH, LD_LIBRARY_PATH, the system's) that has one of that name. A program has this
// directory in its RPATH, as $ORIGIN/../lib/collimate or as it was linked, so that it finds its files where it finds
// its libraries, wherever both are moved. Empty when there is none.
std::filesystem::path beside_libraries(const std::filesystem::path& name);

// Loads a library from there, to stay. InputError naming `what`, with what was `expected` and the `remedy`, where there
// is none or the loader refuses it.
void* load_beside_libraries(const std::string& library, const std::string& what, const std::string& expected,
                            const std::string& remedy);

}  // namespace collimate::host

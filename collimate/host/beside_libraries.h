#pragma once

#include <filesystem>
#include <string>

namespace collimate::host {

// Finds a file or directory of an installation: looks for the name in each directory in which the loader looks for the
// libraries of this code (its RPATH, LD_LIBRARY_PATH, the system's) and returns the first that exists. A program's
// RPATH has $ORIGIN/../lib/collimate or the directory it was linked with, so a program finds its files where it finds
// its libraries, wherever both are moved. Returns an empty path when there is none.
std::filesystem::path beside_libraries(const std::filesystem::path& name);

// Loads a library from there for the rest of the process. Throws InputError naming `what`, with the texts `expected`
// and `remedy`, where there is none or the loader refuses it.
void* load_beside_libraries(const std::string& library, const std::string& what, const std::string& expected,
                            const std::string& remedy);

}  // namespace collimate::host

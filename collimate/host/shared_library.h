#pragma once

#include <string>

namespace collimate::host {

// Loads a shared library that uses this program's functions, for the rest of the process. The program's own symbols are
// made visible to it first, even when this code is itself in a library with local symbols, such as a Python module.
// Throws RunError with the loader's own words.
void* load_library(const std::string& path);

// Returns the address of a function of a loaded library, or null where it has none.
void* library_symbol(void* library, const char* name);

}  // namespace collimate::host

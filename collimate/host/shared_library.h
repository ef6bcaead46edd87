#pragma once

#include <string>

namespace collimate::host {

// Loads a shared library that uses this program's functions, to stay. The program's own symbols are made visible to it
// first, also where this code is itself a library that was loaded for its loader alone, as a module of Python is.
// RunError with the loader's own words.
void* load_library(const std::string& path);

// The address of a function of a loaded library; null where it has none.
void* library_symbol(void* library, const char* name);

}  // namespace collimate::host

#pragma once

#include <filesystem>
#include <string>

#include "collimate/host/file_io.h"

namespace collimate::host {

// Opens a new file for reading and writing that no directory lists, and that is gone when it is closed. Where the file
// system does not have such files, it has a name for a moment. Throws RunError, which names the directory and the
// action, as "to make a file".
FileDescriptor unnamed_file(const std::filesystem::path& directory, const std::string& action);

}  // namespace collimate::host

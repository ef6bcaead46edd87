#pragma once

#include <filesystem>

#include "collimate/host/file_io.h"

namespace collimate::recipe {

// Takes the lock of an existing directory of a run or a pipeline. The lock is held until the descriptor is closed, at
// the latest by the end of the process. Throws InputError, which names the holding process, when the lock is taken.
// Where the file system has no such locks, warns and returns without one.
host::FileDescriptor lock_directory(const std::filesystem::path& directory);

}  // namespace collimate::recipe

#pragma once

#include <filesystem>

#include "collimate/host/file_io.h"

namespace collimate::recipe {

// Takes the lock of a run's or a pipeline's directory, which is there: it is held until the descriptor is closed, by
// the process's end too. InputError that names the process that holds it.
host::FileDescriptor lock_directory(const std::filesystem::path& directory);

}  // namespace collimate::recipe

#include "collimate/host/scratch_directory.h"

#include <cstdlib>
#include <system_error>

#include "collimate/base/error.h"

namespace collimate::host {

namespace fs = std::filesystem;

ScratchDirectory::ScratchDirectory(const std::string& purpose) {
  std::string name = (fs::temp_directory_path() / ("collimate-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    throw base::RunError(base::expectation(fs::temp_directory_path().string(), "to make a directory", "an error"));
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace collimate::host

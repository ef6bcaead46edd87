#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace collimate::test {

// Path of a file below the shared test data ($COLLIMATE_SHARED, else ../shared beside the repository), or "" when it is
// not there.
inline std::string shared_path(const std::string& relative) {
  const char* variable = std::getenv("COLLIMATE_SHARED");
  const std::filesystem::path root = variable != nullptr ? variable : COLLIMATE_SOURCE_DIR "/../shared";
  const std::filesystem::path path = root / relative;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace collimate::test

#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::text {

// A file or folder of this folder's testdata.
inline std::string testdata(const std::string& name) {
  return std::string(COLLIMATE_SOURCE_DIR "/collimate/text/testdata/") + name;
}

// A file or folder of the shared data; empty when this machine does not have it.
inline std::string shared_data(const std::string& name) {
  const char* root = std::getenv("COLLIMATE_SHARED");
  const std::string path = std::string(root != nullptr ? root : COLLIMATE_SOURCE_DIR "/../shared") + "/data/" + name;
  return std::filesystem::exists(path) ? path : "";
}

// A file of tests/golden, or the one that the variable names in its place.
inline std::string golden_file(const std::string& name, const char* variable) {
  const char* named = std::getenv(variable);
  return named != nullptr ? named : COLLIMATE_SOURCE_DIR "/tests/golden/" + name;
}

using base::message_of;
using base::TemporaryDirectory;

}  // namespace collimate::text

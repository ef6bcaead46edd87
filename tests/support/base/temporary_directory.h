#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "collimate/base/immovable.h"

namespace collimate::base {

// A new empty directory, removed with the object.
class TemporaryDirectory : private Immovable {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "collimate-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace collimate::base

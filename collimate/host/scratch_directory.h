#pragma once

#include <filesystem>
#include <string>

#include "collimate/base/immovable.h"

namespace collimate::host {

// A ScratchDirectory is a new directory among the system's temporary ones, which is removed with the object.
class ScratchDirectory : private base::Immovable {
 public:
  // Makes a directory whose name begins with "collimate-PURPOSE-". Throws RunError.
  explicit ScratchDirectory(const std::string& purpose);
  ~ScratchDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace collimate::host

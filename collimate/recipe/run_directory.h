#pragma once

#include <filesystem>
#include <string>

#include "collimate/recipe/config.h"

namespace collimate::recipe {

// A run's directory (interface.md): whose it is, and where to go on.
class RunDirectory {
 public:
  // Claims `output` for the config. resume auto: a directory of the same config hash goes on from its newest
  // checkpoint; never: only a new or empty directory; a directory: that run's newest checkpoint. InputError, with
  // nothing changed, when it holds another run or is no run's directory.
  RunDirectory(const Config& config, const std::string& output, const std::string& resume);

  const std::filesystem::path& path() const { return path_; }
  // The checkpoint to go on from, or "", and the iterations complete in it.
  const std::string& checkpoint() const { return checkpoint_; }
  int64_t completed() const { return completed_; }
  std::filesystem::path samples(int64_t step) const;

 private:
  std::filesystem::path path_;
  std::string checkpoint_;
  int64_t completed_ = 0;
};

}  // namespace collimate::recipe

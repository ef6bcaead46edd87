#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// A run's directory (interface.md): whose it is, and where to go on.
class RunDirectory {
 public:
  // Claims `output` for the config. resume auto: a directory of the same config hash goes on from its newest
  // checkpoint; never: only a new or empty directory; a directory: that run's newest checkpoint. InputError, with
  // nothing changed, when it holds another run or is no run's directory, or when that run began with other weights than
  // the plan reads now.
  RunDirectory(const Config& config, const Plan& plan, const std::string& output, const std::string& resume);

  const std::filesystem::path& path() const { return path_; }
  // The checkpoint to go on from, or "", and the iterations complete in it.
  const std::string& checkpoint() const { return checkpoint_; }
  int64_t completed() const { return completed_; }
  // What summary.json says where this directory's run has come to its end, which that checkpoint holds.
  std::optional<nlohmann::ordered_json> summary() const;
  bool has_model() const { return std::filesystem::exists(path_ / "model"); }
  // Files of an iteration's samples, and of those drawn for held-out prompts after it (0: before the first).
  std::filesystem::path samples(int64_t step) const;
  std::filesystem::path held_out_samples(int64_t step) const;

  // After wrong input that showed only when workers started: removes the directory if this object filled it and nothing
  // has been trained or evaluated in it, so that the corrected config can use it.
  void give_up() const;

 private:
  std::filesystem::path path_;
  bool fresh_ = false;  // new or empty when claimed
  bool own_ = true;     // the checkpoint is one of this directory
  std::string checkpoint_;
  int64_t completed_ = 0;
};

}  // namespace collimate::recipe

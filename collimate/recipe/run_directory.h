#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"
#include "collimate/recipe/train.h"

namespace collimate::recipe {

// Returns the directory of the run that the call goes on with. By auto this is `output`, or "" where the run in it is
// to make way; by never it is ""; else it is the run that the call names itself or by one of its checkpoints.
std::string run_to_resume(const TrainCall& call);

// Returns each key of the config that has another value than in that run's and for which the run does not go on:
// "train.learning_rate: 1e-06 -> 2e-06". For a run whose config cannot be read, returns why not.
std::vector<std::string> refused_changes(const std::filesystem::path& run, const Config& config);

// Recorder keeps {bytes, crc32c} of metrics.jsonl in a checkpoint under this name.
constexpr const char* kMetricsState = "metrics";

// Holds a run's directory (interface.md), which says whose it is and where to go on. While this object lives, no other
// of its directory does, in this process or another.
class RunDirectory : private base::Immovable {
 public:
  // Claims the call's `output` for the config. With resume auto, a directory of the same config, but for changed(),
  // goes on from its newest checkpoint. With never, the directory must be new or empty. With a run's directory or a
  // checkpoint, the run goes on from the newest checkpoint there or from that one, which is copied with the records
  // before it; where it is of `output` itself, later checkpoints are removed. A run that is there is removed first
  // where the call overwrites it, or where it is of another config and ended before an iteration was done: the files
  // that runs write (recipe/run_files.h), and no others. Throws InputError, with nothing changed, when `output` cannot
  // be made, holds another run or is no run's directory, when that run is going on, when the checkpoint or the metrics
  // before it are not as they were written, or when the run began with other files or data than are read now
  // (recipe/run_inputs.h).
  RunDirectory(const Config& config, const Plan& plan, const RunData& data, const TrainCall& call);

  const std::filesystem::path& path() const { return path_; }
  // Returns the checkpoint to go on from, or "". completed() returns the iterations that are done in it.
  const std::string& checkpoint() const { return checkpoint_; }
  int64_t completed() const { return completed_; }
  // Returns how many lines of metrics.jsonl the run had written when it ended without a checkpoint. It begins again
  // without them.
  int64_t dropped_lines() const { return dropped_lines_; }
  // Returns the keys that have another value than when the run began, "run.iterations: 10 -> 20". Only keys outside of
  // the config's hash may differ, which say how long the run is, what is kept of it and on what it runs.
  const std::vector<std::string>& changed() const { return changed_; }
  // Says, for a person, that a run was removed to begin this one, and why; "" where none was.
  const std::string& removed() const { return removed_; }
  // Returns what summary.json says where this directory's run has come to its end with checkpoint(); nothing otherwise.
  std::optional<nlohmann::ordered_json> summary() const;
  // Returns the log that the process that trains writes for a person.
  std::filesystem::path log() const { return path_ / "logs" / "rank-0.log"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  // Returns whether the run's model is there: its config, and weights that are not cut. Otherwise it is exported again.
  bool has_model() const;
  // Returns whether nothing is left to do: this directory's run has come to its end and its model is there, as it is
  // wanted.
  bool ended() const { return summary().has_value() && has_model() && !exports_anew_; }
  // Return the files of an iteration's samples, and of the held-out rows of an evaluation after it (0: before the
  // first).
  std::filesystem::path samples(int64_t step) const;
  std::filesystem::path held_out_samples(int64_t step, const std::string& evaluation) const;

  // Removes what runs write, and the directory where it holds nothing else, so that the corrected config can use it.
  // Call it after wrong input that showed only when workers started. Does nothing unless this object began the run and
  // nothing has been trained or evaluated in it.
  void give_up() const;
  // Returns where the run's model is to be written. A run that has ended and whose model is to have another form writes
  // it beside the present one, which stays with its config until keep_export().
  std::filesystem::path model_to_write() const;
  // Puts a model that was written beside the present one, and the config that the call asked for, in the place of those
  // of the directory.
  void keep_export() const;

 private:
  void make_way(const Config& config, const TrainCall& call);
  void begin(const std::string& resolved);
  bool writes_anew() const { return exports_anew_ && summary().has_value(); }

  std::filesystem::path path_;
  bool fresh_ = false;  // new or empty when claimed, or about to be emptied
  bool own_ = true;     // the checkpoint is one of this directory
  std::vector<std::string> changed_;
  std::string removed_;
  bool goes_on_ = false;       // its length or patience has changed, and iterations are left to do
  bool exports_anew_ = false;  // its model has another type now, or is of another checkpoint
  std::string resolved_;       // the config's text, where keys have changed
  host::FileDescriptor lock_;  // of run.lock
  std::string checkpoint_;
  int64_t completed_ = 0;
  int64_t dropped_lines_ = 0;
};

}  // namespace collimate::recipe

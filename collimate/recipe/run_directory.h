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

// A run's directory (interface.md): whose it is, and where to go on. While it lives, no other of its directory does, in
// this process or another.
// The directory of the run that the call goes on with: `output` by auto, unless its run is to make way, "" by never,
// else the one that is named by itself or by one of its checkpoints.
std::string run_to_resume(const TrainCall& call);

// Names each key of the config that has another value than in that run's, "train.learning_rate: 1e-06 -> 2e-06", and
// for which the run does not go on; of a run whose config cannot be read, why not.
std::vector<std::string> refused_changes(const std::filesystem::path& run, const Config& config);

// {bytes, crc32c} of a file, as Recorder keeps it of metrics.jsonl in a checkpoint under this name.
constexpr const char* kMetricsState = "metrics";
nlohmann::json measure_file(const std::filesystem::path& path);

class RunDirectory : private base::Immovable {
 public:
  // Claims the call's `output` for the config. resume auto: a directory of the same config, but for changed(), goes on
  // from its newest checkpoint; never: only a new or empty directory; a directory: that run's newest checkpoint, or the
  // checkpoint that it is, which is copied with the records before it; of `output` itself, later checkpoints are
  // removed. The run that is there is removed first where the call overwrites it, or where it is of another config and
  // ended before an iteration was done: the files that runs write (recipe/run_files.h), and no others. InputError, with
  // nothing changed, when `output` cannot be made, holds another run or is no run's
  // directory, when that run is going on, when the checkpoint or the metrics before it are not as they were written, or
  // when the run began with other files or data than are read now (recipe/run_inputs.h).
  RunDirectory(const Config& config, const Plan& plan, const RunData& data, const TrainCall& call);

  const std::filesystem::path& path() const { return path_; }
  // The checkpoint to go on from, or "", and the iterations complete in it.
  const std::string& checkpoint() const { return checkpoint_; }
  int64_t completed() const { return completed_; }
  // Lines of metrics.jsonl that the run had written when it ended without a checkpoint: it begins again without them.
  int64_t dropped_lines() const { return dropped_lines_; }
  // Keys that have another value than when the run began, "run.iterations: 10 -> 20". They say how long it is and what
  // is kept of it.
  const std::vector<std::string>& changed() const { return changed_; }
  // Says, for a person, that a run was removed to begin this one, and why; "" where none was.
  const std::string& removed() const { return removed_; }
  // Gives what summary.json says where this directory's run has come to its end, which that checkpoint holds.
  std::optional<nlohmann::ordered_json> summary() const;
  // The process that trains writes this for a person.
  std::filesystem::path log() const { return path_ / "logs" / "rank-0.log"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  // The run's model is there: config, and weights that are not cut. Else it is exported again.
  bool has_model() const;
  // Nothing is left to do: this directory's run has come to its end and its model is there, as it is wanted.
  bool ended() const { return summary().has_value() && has_model() && !exports_anew_; }
  // Files of an iteration's samples, and of the held-out rows of an evaluation after it (0: before the first).
  std::filesystem::path samples(int64_t step) const;
  std::filesystem::path held_out_samples(int64_t step, const std::string& evaluation) const;

  // After wrong input that showed only when workers started: removes what runs write, and the directory where it holds
  // nothing else, if this object began it and nothing has been trained or evaluated in it, so that the corrected config
  // can use it.
  void give_up() const;
  // Where the run's model is to be written: of one that has ended and is to have another form, beside the one that is
  // there, which stays with its config until keep_export().
  std::filesystem::path model_to_write() const;
  // The model has been written: it and the config that the call asked for are those of the directory.
  void keep_export() const;

 private:
  void make_way(const Config& config, const TrainCall& call);
  void begin(const std::string& resolved);
  bool writes_anew() const { return exports_anew_ && summary().has_value(); }

  std::filesystem::path path_;
  bool fresh_ = false;  // new or empty when claimed
  bool own_ = true;     // the checkpoint is one of this directory
  std::vector<std::string> changed_;
  std::string removed_;
  bool goes_on_ = false;       // it had come to its end, or was to, and is longer now
  bool exports_anew_ = false;  // its model has another type now, or is of another checkpoint
  std::string resolved_;       // the config's text, where keys have changed
  host::FileDescriptor lock_;  // of run.lock
  std::string checkpoint_;
  int64_t completed_ = 0;
  int64_t dropped_lines_ = 0;
};

}  // namespace collimate::recipe

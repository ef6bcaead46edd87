#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "collimate/recipe/config.h"

namespace collimate::recipe {

// These are the names of files in a run's directory; docs/run-directory.md says what each is.
constexpr const char* kResolvedFile = "config.resolved.yaml";
constexpr const char* kMetricsFile = "metrics.jsonl";
constexpr const char* kJournalFile = "journal.bin";
constexpr const char* kSummaryFile = "summary.json";
constexpr const char* kStoppedFile = "stopped.json";  // why the run is not going on; none while it does, or has ended
constexpr const char* kReportFile = "report.html";
constexpr const char* kLockFile = "run.lock";  // stays, with the last holder's pid: removing it would race
// The model of a run that has ended is written here in another form, then takes the place of the one before.
constexpr const char* kAnewDirectory = "model.anew";

// A program whose data is in memory writes it here, in the run's directory, before the run. A directory that holds this
// alone counts as new.
constexpr const char* kRowsDirectory = "rows";

// Returns the key of a config's value from its place in JSON: "run.seed" of "/run/seed".
std::string config_key(const std::string& pointer);

// Returns whether `train` made the directory: its config and its lock are there.
bool holds_run(const std::filesystem::path& directory);

// Returns whether the run in the directory ended before an iteration was done, so that nothing has been learned that
// could be lost. False for a run whose records cannot be read.
bool holds_nothing_learned(const std::filesystem::path& run);

// Removes what a run writes, the config last. Other files, the lock and the rows from memory stay. Throws RunError.
void remove_run(const std::filesystem::path& run);

// Throws InputError where a value of the config, or of `more` (option, path), names something that remove_run would
// remove.
void refuse_to_remove_inputs(const std::filesystem::path& run, const Config& config,
                             const std::vector<std::pair<std::string, std::string>>& more);

}  // namespace collimate::recipe

#include "collimate/recipe/run_files.h"

#include <algorithm>
#include <system_error>

#include "collimate/base/error.h"
#include "collimate/base/metrics.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/host/atomic_file.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;

// These files are removed in this order: without the first the run has not ended, without the last there is none.
constexpr const char* kRunFiles[] = {kSummaryFile,   kStoppedFile,  kReportFile,    "model",       "model-ema",
                                     kAnewDirectory, "checkpoints", "samples",      "tensorboard", "wandb",
                                     "trace.json",   "profile.txt", "events.jsonl", kJournalFile,  kMetricsFile,
                                     "logs",         "plan.yaml",   "models.json",  kResolvedFile};

// Returns a path without links and dots, as far as it is there.
fs::path true_path(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : found;
}

// Is the path one that a run in the directory writes, or below one?
bool is_written(const fs::path& path, const fs::path& run) {
  const fs::path below = true_path(path).lexically_relative(true_path(run));
  return std::ranges::any_of(kRunFiles, [&](const char* name) { return !below.empty() && *below.begin() == name; });
}

void remove_entry(const fs::path& path) {
  if (fs::is_directory(fs::symlink_status(path))) return host::remove_directory(path);
  std::error_code error;
  fs::remove(path, error);  // removes a link, and not where it leads
  if (error) host::throw_io_error(path, "to remove the file", error.value());
}

}  // namespace

std::string config_key(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::ranges::replace(key, '/', '.');
  return key;
}

bool holds_run(const fs::path& directory) {
  return fs::is_regular_file(directory / kResolvedFile) && fs::is_regular_file(directory / kLockFile);
}

bool holds_nothing_learned(const fs::path& run) {
  if (fs::exists(run / kSummaryFile) || fs::exists(run / "model")) return false;
  if (!flow::Checkpoints(run).latest().empty()) return false;
  if (!fs::exists(run / kMetricsFile)) return true;
  std::vector<std::string> unreadable;
  const std::vector<base::MetricsRecord> records = base::read_metrics(run / kMetricsFile, &unreadable);
  return unreadable.empty() && std::ranges::all_of(records, [](const auto& record) { return record.step == 0; });
}

void remove_run(const fs::path& run) {
  for (const std::string name : kRunFiles)
    for (const char* state : {"", ".partial", ".removed"}) remove_entry(run / (name + state));
}

void refuse_to_remove_inputs(const fs::path& run, const Config& config,
                             const std::vector<std::pair<std::string, std::string>>& more) {
  const auto refuse = [&](const std::string& key, const std::string& path) {
    if (is_written(path, run))
      throw base::InputError(
          base::expectation(key, fmt::format("nothing of the run in {}, which is to be removed", run.string()), path,
                            "another --output, or a copy of it outside of that run"));
  };
  for (const auto& [option, path] : more) refuse(option, path);
  const nlohmann::json values = base::to_json(config.section_value()).flatten();
  for (const auto& item : values.items())
    if (item.value().is_string()) refuse(config_key(item.key()), item.value().get<std::string>());
}

}  // namespace collimate::recipe

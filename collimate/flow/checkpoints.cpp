#include "collimate/flow/checkpoints.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/file_status.h"

namespace collimate::flow {
namespace fs = std::filesystem;

Checkpoints::Checkpoints(std::string run_directory, Retention keep)
    : directory_(std::move(run_directory) + "/checkpoints"), keep_(std::move(keep)) {}

std::string Checkpoints::begin(int64_t step) {
  settle();
  host::ensure_directory(directory_);
  host::remove_leftovers(directory_);
  for (const fs::path& path : host::paths_in(directory_))
    if (path.extension() == ".partial") host::remove_path(path);
  building_ = std::make_unique<host::AtomicDirectory>(directory_ + fmt::format("/step-{:06}", step));
  return building_->building().string();
}

std::string Checkpoints::commit() {
  COLLIMATE_CHECK(building_ != nullptr);
  const fs::path building = building_->building();
  const std::string path = (building.parent_path() / building.stem()).string();
  write_list(building, checkpoint_step(path));
  committing_ = std::async(std::launch::async, [made = std::move(building_), old = outdated_by(path)] {
    base::fault_count("checkpoint.commit", 1);
    made->commit();
    for (const std::string& checkpoint : old) host::remove_directory(checkpoint);
  });
  return path;
}

void Checkpoints::settle() {
  if (committing_.valid()) committing_.get();
}

void Checkpoints::poll() {
  if (committing_.valid() && committing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) settle();
}

std::vector<std::string> Checkpoints::list() const {
  std::vector<std::string> found;
  if (!host::is_directory(directory_)) return found;
  for (const fs::path& path : host::paths_in(directory_))
    if (is_checkpoint(path)) found.push_back(path.string());
  std::sort(found.begin(), found.end(),
            [](const std::string& a, const std::string& b) { return checkpoint_step(a) < checkpoint_step(b); });
  return found;
}

std::string Checkpoints::latest() const {
  std::vector<std::string> all = list();
  return all.empty() ? "" : all.back();
}

std::string Checkpoints::best() const {
  std::string best;
  std::optional<double> highest;
  for (const std::string& checkpoint : list()) {
    const std::optional<double> value = keep_.value ? keep_.value(checkpoint_step(checkpoint)) : std::nullopt;
    if (!value || (highest && *value <= *highest)) continue;
    best = checkpoint;
    highest = value;
  }
  return best;
}

std::vector<std::string> Checkpoints::outdated_by(const std::string& next) const {
  std::vector<std::string> old = list();
  std::erase(old, next);                                        // may be there when a run that has gone back reaches it
  const int64_t kept = std::max<int64_t>(1, keep_.newest) - 1;  // beside the next one
  old.resize(static_cast<size_t>(std::max<int64_t>(0, std::ssize(old) - kept)));
  std::erase(old, best());
  return old;
}

void Checkpoints::remove_after(int64_t step) const {
  for (const std::string& checkpoint : list())
    if (checkpoint_step(checkpoint) > step) host::remove_directory(checkpoint);
}

}  // namespace collimate::flow

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace collimate::report {

// Returns whether the directory is that of a pipeline, whose steps are runs in folders of it.
bool is_pipeline(const std::filesystem::path& directory);

// Makes one page of a pipeline. For each step of its summary.json whose run has begun, it has what the step did, its
// numbers, its first curves and a link to the run's own page; of other steps it says that they have not begun. The page
// is as self-contained as a run's. Errors are as for render_report(): InputError, or added to `unreadable`.
std::string render_pipeline(const std::filesystem::path& directory, std::vector<std::string>* unreadable = nullptr);

}  // namespace collimate::report

#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace collimate::report {

// Is the directory one of a pipeline, whose steps are runs in folders of it?
bool is_pipeline(const std::filesystem::path& directory);

// One page of a pipeline: for each step of its summary.json whose run has begun what it did, its numbers, its first
// curves and a link to the run's own page; of others that they have not begun. Self-contained as a run's page is.
// InputError as render_report, or added to `unreadable`.
std::string render_pipeline(const std::filesystem::path& directory, std::vector<std::string>* unreadable = nullptr);

}  // namespace collimate::report

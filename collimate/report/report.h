#pragma once

#include <filesystem>
#include <string>

namespace collimate::report {

// The page of one run as a single self-contained HTML file: nothing is fetched, no script is needed to read it.
// Reads metrics.jsonl (required) and, where present, summary.json, config.resolved.yaml, samples/*.jsonl, trace.json;
// a part that is absent is named on the page. Throws InputError naming the file that is missing or malformed.
std::string render_report(const std::filesystem::path& run_directory);

}  // namespace collimate::report

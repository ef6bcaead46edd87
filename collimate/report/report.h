#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace collimate::report {

// Makes the page of one run as a single self-contained HTML file: nothing is fetched, no script is needed to read it.
// Reads metrics.jsonl (required) and, where present, stopped.json, summary.json, config.resolved.yaml, samples/*.jsonl
// and trace.json. The page names those that are absent, except stopped.json. Throws InputError naming the file that is
// missing or malformed; where `unreadable` is given, as for a run that has just ended, errors are added to it and named
// on the page.
std::string render_report(const std::filesystem::path& run_directory, std::vector<std::string>* unreadable = nullptr);

// Makes a page of several runs: their curves over each other, their numbers side by side, the keys of their configs
// that differ, and what each answers to the same prompts. Throws InputError as render_report() does, and for fewer than
// two runs.
std::string render_comparison(const std::vector<std::filesystem::path>& run_directories);

}  // namespace collimate::report

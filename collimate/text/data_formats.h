#pragma once

#include <optional>
#include <string>
#include <vector>

namespace collimate::text {

// Files hold rows in these formats; data_formats.cpp has the one table of their names and endings.
enum class DataFormat { kLines, kJson, kCsv, kTsv, kParquet, kArrow, kText };

// Gives the format that a config calls by this name; nothing for none.
std::optional<DataFormat> format_named(const std::string& name);
// Gives the format that the ending of a path says, of a compressed file that before it; nothing for none.
std::optional<DataFormat> format_of(const std::string& path);

// ".jsonl", or ".jsonl.gz" of a compressed file.
std::string data_ending(const std::string& path);

// "auto, jsonl, json, csv, tsv, parquet, arrow or text": what a config may say.
std::string format_names();
// ".jsonl, .json, .csv, .tsv, .parquet, .arrow or .txt": the ending of each.
std::string format_endings();
// The endings that say of a file that it has rows: not those of texts, and of JSON, which models keep beside weights.
std::vector<std::string> likely_endings();

}  // namespace collimate::text

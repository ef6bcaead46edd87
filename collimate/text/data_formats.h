#pragma once

#include <optional>
#include <string>
#include <vector>

namespace collimate::text {

// Files hold rows in these formats; data_formats.cpp has the one table of their names and endings.
enum class DataFormat { kLines, kJson, kCsv, kTsv, kParquet, kArrow, kText };

// Returns the format that a config calls by this name; nothing for an unknown name.
std::optional<DataFormat> format_named(const std::string& name);
// Returns the format that a path's ending tells, for a compressed file the ending before the last; nothing for an
// unknown ending.
std::optional<DataFormat> format_of(const std::string& path);

// Returns the ending of a path: ".jsonl", or ".jsonl.gz" for a compressed file.
std::string data_ending(const std::string& path);

// Returns "auto, jsonl, json, csv, tsv, parquet, arrow or text": the formats that a config may name.
std::string format_names();
// Returns ".jsonl, .json, .csv, .tsv, .parquet, .arrow or .txt": one ending of each format.
std::string format_endings();
// Returns the endings that tell that a file holds rows. Texts and JSON are left out, as models keep such files beside
// weights.
std::vector<std::string> likely_endings();

}  // namespace collimate::text

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace collimate::text {

bool file_exists(const std::string& path);

// Returns a whole file as JSON. Throws InputError with the line of the first mistake.
nlohmann::json read_json_file(const std::string& path);

// Returns the path that generation_config.json has in a model's directory, or in that of the base model where the
// directory holds adapters. The file need not exist.
std::string generation_config_path(const std::string& directory);

// Copies generation_config.json, which names further stop ids, from the directory `from`, or from that of the base
// model where `from` holds adapters. Does nothing where there is no such file.
void copy_generation_config(const std::string& from, const std::string& to);

// Returns the 1-based line of a byte offset.
int64_t line_at(std::string_view text, size_t offset);

}  // namespace collimate::text

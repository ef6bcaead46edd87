#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collimate::text {

bool file_exists(const std::string& path);

// Whole file as JSON. Throws InputError with the line of the first mistake.
nlohmann::json read_json_file(const std::string& path);

// Copies generation_config.json, which names further stop ids, where `from`, or the model of its adapters, has one.
void copy_generation_config(const std::string& from, const std::string& to);

// 1-based line of a byte offset.
int64_t line_at(const std::string& text, size_t offset);

}  // namespace collimate::text

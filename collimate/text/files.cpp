#include "collimate/text/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/base/json.h"

namespace collimate::text {

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || std::filesystem::is_directory(path)) {
    throw base::InputError(base::expectation(path, "a readable file", "none there"));
  }
  std::string content(static_cast<size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!in) throw base::InputError(base::expectation(path, "a readable file", "an error while reading"));
  return content;
}

nlohmann::json read_json_file(const std::string& path) { return base::parse_json(read_file(path), path, 1); }

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) throw base::RunError(fmt::format("[{}] could not be written; is the disk full?", path));
}

void copy_generation_config(const std::string& from, const std::string& to) {
  const std::string name = "/generation_config.json";
  if (file_exists(from + name)) write_file(to + name, read_file(from + name));
}

int64_t line_at(const std::string& text, size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

}  // namespace collimate::text

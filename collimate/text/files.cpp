#include "collimate/text/files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"

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

nlohmann::json read_json_file(const std::string& path) {
  const std::string content = read_file(path);
  try {
    return nlohmann::json::parse(content);
  } catch (const nlohmann::json::parse_error& error) {
    throw base::InputError(
        base::expectation(fmt::format("{}:{}", path, line_at(content, error.byte)), "well-formed JSON", error.what()));
  }
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) throw base::RunError(fmt::format("[{}] could not be written; is the disk full?", path));
}

int64_t line_at(const std::string& text, size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

}  // namespace collimate::text

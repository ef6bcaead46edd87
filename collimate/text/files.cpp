#include "collimate/text/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "collimate/base/json.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/base_model.h"
#include "collimate/host/file_io.h"

namespace collimate::text {
namespace {

constexpr const char* kGenerationConfig = "/generation_config.json";

}  // namespace

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

nlohmann::json read_json_file(const std::string& path) { return base::parse_json(host::read_file(path), path, 1); }

std::string generation_config_path(const std::string& directory) {
  return fmt::format("{}{}", host::base_directory(directory), kGenerationConfig);
}

void copy_generation_config(const std::string& from, const std::string& to) {
  const std::string path = generation_config_path(from);
  if (file_exists(path)) host::write_file_atomically(to + kGenerationConfig, host::read_file(path));
}

int64_t line_at(std::string_view text, size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  return 1 + std::count(text.begin(), end, '\n');
}

}  // namespace collimate::text

#include "collimate/host/file_status.h"

#include <string>

#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

// Returns what `ask` returns. An error of the library names the path that failed, if it knows it.
template <class Ask>
auto ask_for(const fs::path& path, const std::string& action, const Ask& ask) {
  try {
    return ask();
  } catch (const fs::filesystem_error& error) {
    throw_io_error(error.path1().empty() ? path : error.path1(), action, error.code().value());
  }
}

template <class Iterator>
std::vector<fs::path> listed(const fs::path& directory) {
  return ask_for(directory, "to list what is in it", [&] {
    std::vector<fs::path> paths;
    for (const auto& entry : Iterator(directory)) paths.push_back(entry.path());
    return paths;
  });
}

}  // namespace

bool path_exists(const fs::path& path) {
  return ask_for(path, "to look for it", [&] { return fs::exists(path); });
}

bool is_file(const fs::path& path) {
  return ask_for(path, "to look for it", [&] { return fs::is_regular_file(path); });
}

bool is_directory(const fs::path& path) {
  return ask_for(path, "to look for it", [&] { return fs::is_directory(path); });
}

std::vector<fs::path> paths_in(const fs::path& directory) { return listed<fs::directory_iterator>(directory); }

std::vector<fs::path> paths_below(const fs::path& directory) {
  return listed<fs::recursive_directory_iterator>(directory);
}

void remove_path(const fs::path& path) {
  ask_for(path, "to remove it", [&] { return fs::remove_all(path); });
}

}  // namespace collimate::host

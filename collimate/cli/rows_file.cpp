#include "collimate/cli/rows_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/atomic_file.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string command_file(const std::string& path) { return path + ".command.json"; }

bool has_lines(const std::string& path) { return fs::exists(path) && fs::file_size(path) > 0; }

// Returns the name "sampling.top_p" for the JSON pointer "/sampling/top_p".
std::string name_of(std::string pointer) {
  pointer.erase(0, 1);
  std::ranges::replace(pointer, '/', '.');
  for (size_t at; (at = pointer.find("~1")) != std::string::npos;) pointer.replace(at, 2, "/");
  return pointer;
}

// Throws InputError that names the first value that differs, or is missing on one side.
void check_same(const std::string& path, const Json& before, const Json& now) {
  Json all = before.flatten();
  const Json then = all, here = now.flatten();
  all.update(here);
  for (const auto& [name, ignored] : all.items()) {
    const std::string was = then.contains(name) ? then.at(name).dump() : "none";
    const std::string is = here.contains(name) ? here.at(name).dump() : "none";
    if (was == is) continue;
    throw base::InputError(base::expectation(
        path, fmt::format("the command that began it, with {} {}", name_of(name), was), is, "another --output"));
  }
}

}  // namespace

RowsFile::RowsFile(std::string path, const Json& command) : path_(std::move(path)) {
  const std::string beside = command_file(path_);
  if (!has_lines(path_)) {
    host::write_file_atomically(beside, command.dump(1) + "\n");
  } else if (!fs::exists(beside)) {
    throw base::InputError(base::expectation(path_, "a file that this verb began",
                                             fmt::format("one without {} beside it", beside), "another --output"));
  } else {
    check_same(path_, base::parse_ordered_json(host::read_file(beside), beside, 1), command);
  }
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_.valid()) host::throw_io_error(path_, "write", errno);
  keep_whole_lines();
}

void RowsFile::keep_whole_lines() {
  const std::string text = host::read_file(path_);
  const size_t end = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  lines_ = std::count(text.begin(), text.end(), '\n');
  if (end < text.size() && ::ftruncate(file_.get(), static_cast<off_t>(end)) != 0)
    host::throw_io_error(path_, "drop a line that was cut", errno);
}

void RowsFile::append(std::string_view line) {
  const std::string whole = std::string(line) + "\n";
  host::write_fully(file_.get(), std::as_bytes(std::span(whole)), path_);
}

}  // namespace collimate::cli

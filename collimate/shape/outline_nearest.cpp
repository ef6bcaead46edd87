#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <regex>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"
#include "collimate/shape/outline.h"

namespace collimate::shape {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAnyModel = "such a directory, or a name that collimate plan --list models shows";
constexpr const char* kConfig = "config.json";

// A wholly different family counts as much as a size that differs by a factor of 2^4.
constexpr double kOtherFamily = 4;

// NameParts are family and size of a name: "meta/Llama-2-7b-hf" has the family "llama2" and 7 billions. "8x7b" counts
// as 7, as its name says.
struct NameParts {
  std::string family;
  double billions = 0;  // 0: the name has no size
};

NameParts parts_of(const std::string& name) {
  std::string last = base::lower_case(name.substr(name.find_last_of('/') + 1));
  NameParts parts;
  std::smatch size;
  if (std::regex_search(last, size, std::regex(R"(([0-9]+(?:\.[0-9]+)?)([bm])(?![a-z0-9]))"))) {
    parts.billions = std::strtod(size[1].str().c_str(), nullptr) / (size[2] == "m" ? 1000 : 1);
    last = size.prefix();
  }
  for (const char c : last)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.') parts.family += c;
  return parts;
}

double far_from(const NameParts& wanted, const Outline& model) {
  const NameParts parts = parts_of(model.name);
  const size_t longest = std::max({wanted.family.size(), parts.family.size(), size_t{1}});
  const double family =
      static_cast<double>(base::edit_distance(wanted.family, parts.family)) / static_cast<double>(longest);
  if (wanted.billions <= 0) return kOtherFamily * family;
  const double billions = parts.billions > 0 ? parts.billions : total_parameters(model) / 1e9;
  return kOtherFamily * family + std::abs(std::log2(billions / wanted.billions));
}

// Returns whether a name is meant as a path: it exists, or its parent does, or it is written as a path. "org/model", as
// hubs name their models, is a name.
bool is_path(const std::string& name) {
  const fs::path path(name), parent = path.parent_path();
  std::error_code unreadable;  // a path that cannot be read does not exist
  if (name.empty()) return false;
  const bool written = name.front() == '.' || name.front() == '/' || name.back() == '/' || path.filename() == kConfig ||
                       std::count(name.begin(), name.end(), '/') > 1;
  return written || fs::exists(path, unreadable) || (!parent.empty() && fs::exists(parent, unreadable));
}

std::string what_is_there(const fs::path& path) {
  std::error_code unreadable;
  if (fs::is_directory(path, unreadable)) return "a directory without it";
  return fs::exists(path, unreadable) ? "a file" : "which does not exist";
}

// Returns the model directory that was probably meant: the one that holds the named config.json, one below the named
// directory, or one beside it with a similar name.
std::string nearest_directory(const fs::path& path) {
  std::error_code unreadable;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.filename() == kConfig && fs::exists(path, unreadable)) return "'" + parent.string() + "'";
  const bool below = fs::is_directory(path, unreadable);
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(below ? path : parent, unreadable))
    if (fs::exists(entry.path() / kConfig, unreadable)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string name = below && !names.empty() ? names[0] : base::nearest(path.filename().string(), names);
  return name.empty() ? kAnyModel : "'" + ((below ? path : parent) / name).string() + "'";
}

// Returns `dense-300b` and the like: a plain decoder of the size in the name (7 where it has none), within the bounds.
std::string nearest_dense(const std::string& name) {
  std::smatch size;
  const bool said = std::regex_search(name, size, std::regex("[0-9]+(?:\\.[0-9]+)?"));
  const double billions = said ? std::strtod(size.str().c_str(), nullptr) : 7;
  return fmt::format("dense-{}b", std::clamp(billions, kLeastDense, kMostDense));
}

}  // namespace

std::string nearest_outline(const std::string& name) {
  const NameParts wanted = parts_of(name);
  if (base::edit_distance(wanted.family.substr(0, wanted.family.find_first_of("0123456789")), "dense") <= 1)
    return nearest_dense(name);
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& known : outline_names()) {
    const double far = far_from(wanted, *outline_named(known));
    if (far >= least) continue;
    least = far;
    best = known;
  }
  return best;
}

void throw_unknown_outline(const std::string& name) {
  if (is_path(name))
    throw base::InputError(base::expectation("model", "a directory with config.json",
                                             "'" + name + "', " + what_is_there(name), nearest_directory(name)));
  throw base::InputError(base::expectation(
      "model",
      fmt::format("a directory with config.json, dense-300b (any size) or one of {}", fmt::join(outline_names(), ", ")),
      "'" + name + "'", "'" + nearest_outline(name) + "'"));
}

}  // namespace collimate::shape

#include "collimate/host/python.h"

#include <cstdlib>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/host/beside_libraries.h"

namespace collimate::host {
namespace {

// Returns where the Python package `collimate` with the module lies.
std::string package_directory(const std::string& module) {
  if (const char* variable = std::getenv("COLLIMATE_PYTHON_PATH")) return variable;
  const std::filesystem::path found = beside_libraries("python/collimate/" + module + ".py");
  if (found.empty())
    throw base::InputError(base::expectation("collimate." + module, "python/collimate beside the program's libraries",
                                             "none",
                                             "installing again, or COLLIMATE_PYTHON_PATH=DIR with collimate/ in it"));
  return found.parent_path().parent_path();
}

}  // namespace

std::string package_file(const std::string& module) {
  return (std::filesystem::path(package_directory(module)) / "collimate" / (module + ".py")).string();
}

std::string python_interpreter() {
  const char* variable = std::getenv("COLLIMATE_PYTHON");
  return variable != nullptr ? variable : "python3";
}

ChildOptions python_module(const std::string& interpreter, const std::string& module,
                           const std::vector<std::string>& arguments) {
  const char* old = std::getenv("PYTHONPATH");
  std::string path = package_directory(module);
  if (old != nullptr) path += std::string(":") + old;
  ChildOptions options{.command = {interpreter, "-m", "collimate." + module}, .environment = {{"PYTHONPATH", path}}};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace collimate::host

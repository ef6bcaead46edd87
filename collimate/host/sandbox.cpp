#include "collimate/host/sandbox.h"

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collimate/base/error.h"
#include "collimate/host/hub_cache.h"
#include "collimate/host/python.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

// The interpreter is found, and finds its packages, by these variables. The program inside gets none of them from us.
constexpr const char* kLauncherNames[] = {"PATH", "HOME", "PYTHONUSERBASE"};

std::vector<std::string> path_entries(const std::string& path) {
  std::vector<std::string> entries;
  std::istringstream stream(path);
  for (std::string entry; std::getline(stream, entry, ':');)
    if (!entry.empty()) entries.push_back(entry);
  return entries;
}

void add_variable(const std::string& name, std::vector<std::pair<std::string, std::string>>& out) {
  if (const char* value = std::getenv(name.c_str())) out.emplace_back(name, value);
}

nlohmann::json request_of(const ChildOptions& python, const Sandbox& sandbox) {
  nlohmann::json variables = nlohmann::json::object();
  std::vector<std::string> readable = sandbox.readable, packages;
  for (const auto& [name, value] : python.environment) {
    variables[name] = value;
    for (const std::string& entry : path_entries(value)) packages.push_back(entry);
  }
  if (const fs::path cache = hub_cache(); fs::is_directory(cache)) {
    variables["HF_HUB_CACHE"] = cache.string();
    readable.push_back(cache.string());
  }
  return {{"network", sandbox.network},
          {"environment", sandbox.environment},
          {"variables", variables},
          {"readable", readable},
          {"packages", packages},
          {"files", sandbox.files},
          {"directory", fs::current_path().string()},
          {"memory", sandbox.memory_bytes},
          {"scratch", scratch_bytes(sandbox)},
          {"processes", sandbox.processes},
          {"cpu", sandbox.cpu_seconds}};
}

}  // namespace

int64_t scratch_bytes(const Sandbox& sandbox) { return sandbox.memory_bytes / 4; }

ChildOptions in_sandbox(const ChildOptions& python, const Sandbox& sandbox) {
  COLLIMATE_CHECK(!python.command.empty());
  ChildOptions child = python;
  child.clear_environment = true;
  child.environment.clear();
  for (const char* name : kLauncherNames) add_variable(name, child.environment);
  for (const std::string& name : sandbox.environment) add_variable(name, child.environment);
  child.command = {python.command.front(), "-I", package_file("sandbox"), request_of(python, sandbox).dump()};
  child.command.insert(child.command.end(), python.command.begin() + 1, python.command.end());
  return child;
}

}  // namespace collimate::host

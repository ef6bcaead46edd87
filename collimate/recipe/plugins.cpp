#include "collimate/recipe/plugins.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "collimate/base/error.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"
#include "collimate/host/shared_library.h"
#include "collimate/recipe/plugin_form.h"
#include "collimate/recipe/python_plugin.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr const char* kPlugins = "plugins";

struct LoadedPlugin {
  uint32_t crc = 0;
  std::string error;  // of the loading, "" where it has not failed
};

std::map<std::string, LoadedPlugin>& loaded_plugins() {
  static std::map<std::string, LoadedPlugin> all;  // by canonical path
  return all;
}

std::vector<std::string>& added_list() {
  static std::vector<std::string> all;
  return all;
}

template <class Function>
Function* function_of(void* library, const std::string& path, const char* name) {
  void* found = host::library_symbol(library, name);
  if (found == nullptr)
    throw InputError(
        expectation(path, "a plugin, with COLLIMATE_PLUGIN { … } in one of its sources", "a library without it"));
  return reinterpret_cast<Function*>(found);
}

void check_form(void* library, const std::string& path) {
  const std::string built_for = function_of<const char*()>(library, path, "collimate_plugin_built_for")();
  const auto layout = function_of<unsigned long long()>(library, path, "collimate_plugin_layout")();
  const auto text = [](const std::string& program, unsigned long long of) {
    return fmt::format("{} (layout {:016x})", program, of);
  };
  constexpr uint64_t kOwnLayout = plugin_layout();
  const std::string expected = text(COLLIMATE_PLUGIN_BUILT_FOR, kOwnLayout), got = text(built_for, layout);
  if (expected != got)
    throw InputError(expectation(path, "a plugin built for " + expected, "one for " + got,
                                 "building it again, with the headers of this Collimate"));
}

void load_library_plugin(const std::string& path) {
  void* library = nullptr;
  try {
    library = host::load_library(path);
  } catch (const base::RunError& error) {
    throw InputError(expectation(path, "a plugin that can be loaded", error.what()));
  }
  check_form(library, path);
  try {
    function_of<void()>(library, path, "collimate_plugin_register")();
  } catch (const std::exception& error) {
    throw InputError(expectation(path, "a plugin that registers its parts", error.what()));
  } catch (...) {
    throw InputError(
        expectation(path, "a plugin that registers its parts", "something thrown that is no std::exception"));
  }
}

uint32_t crc_of(const std::string& path) { return host::crc32c(host::MappedFile(path).bytes()); }

void check_file(const std::string& path, const std::string& where) {
  const fs::path ending = fs::path(path).extension();
  if (ending != ".so" && ending != ".py")
    throw InputError(
        expectation(where, "plugins to be shared libraries (.so) or Python files (.py)", "\"" + path + "\""));
  if (!fs::is_regular_file(path))
    throw InputError(expectation(where, "a plugin that is there", path, base::nearest_file(path, {".so", ".py"})));
}

}  // namespace

void load_plugin(const std::string& path, const std::string& where) {
  check_file(path, where);
  const uint32_t crc = crc_of(path);
  const auto [entry, fresh] = loaded_plugins().try_emplace(fs::canonical(path).string(), LoadedPlugin{.crc = crc});
  LoadedPlugin& plugin = entry->second;
  if (fresh) {
    try {
      if (fs::path(path).extension() == ".py")
        load_python_plugin(path, crc);
      else
        load_library_plugin(path);
    } catch (const InputError& error) {
      plugin.error = error.what();
    } catch (const std::exception& error) {
      plugin.error = expectation(path, "a plugin that registers its parts", error.what());
    }
  }
  if (plugin.crc != crc)
    throw InputError(
        expectation(where, path + " as this process has loaded it", "another file since", "a new process"));
  if (!plugin.error.empty()) throw InputError(plugin.error);
}

void add_plugin(const std::string& path) {
  load_plugin(path, "--plugin");
  if (std::ranges::find(added_list(), path) == added_list().end()) added_list().push_back(path);
}

const std::vector<std::string>& added_plugins() { return added_list(); }

std::string pinned_plugin(const std::string& path) {
  const auto loaded = loaded_plugins().find(fs::canonical(path).string());
  return fmt::format("{:08x}:{}", loaded == loaded_plugins().end() ? crc_of(path) : loaded->second.crc, path);
}

void add_pinned_plugin(const std::string& pinned) {
  const size_t colon = pinned.find(':');
  if (colon == std::string::npos)
    throw InputError(expectation("--plugin", "CRC32C:FILE, as a run starts its workers", "\"" + pinned + "\""));
  const std::string crc = pinned.substr(0, colon), path = pinned.substr(colon + 1);
  check_file(path, "--plugin");
  if (const std::string now = fmt::format("{:08x}", crc_of(path)); now != crc)
    throw InputError(expectation(path, "the file with which the run has begun, CRC32C " + crc, now,
                                 "putting it back, or starting a new run"));
  add_plugin(path);
}

std::vector<std::string> load_plugins_of(const base::ConfigNode& root) {
  std::vector<std::string> all = added_list();
  const base::ConfigNode* node = root.find(kPlugins);
  if (node == nullptr || node->kind == base::ConfigNode::Kind::kNull) return all;
  const bool one = node->kind == base::ConfigNode::Kind::kScalar;
  const std::vector<base::ConfigNode> entries = one ? std::vector{*node} : node->children;
  for (const base::ConfigNode& entry : entries) {
    if (entry.kind != base::ConfigNode::Kind::kScalar || node->kind == base::ConfigNode::Kind::kMap)
      throw InputError(expectation(node->where, "plugins to be a list of files", node->description()));
    load_plugin(entry.text, entry.where);
    if (std::ranges::find(all, entry.text) == all.end()) all.push_back(entry.text);
  }
  return all;
}

}  // namespace collimate::recipe

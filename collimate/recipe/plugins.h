#pragma once

#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// Loads a plugin, a shared library (recipe/plugin_form.h) or a Python file (recipe/python_plugin.h), once in a process.
// The plugin then registers its parts. Its file may not change from then on. Not thread-safe. Throws InputError, which
// names the file, where it is no plugin, is built for another Collimate, cannot be loaded or throws. A plugin that has
// failed throws the same again. `where` names the place of the path in errors about it.
void load_plugin(const std::string& path, const std::string& where = "plugins");

// Loads a plugin and makes it one of every config that this process reads: `--plugin FILE`.
void add_plugin(const std::string& path);
const std::vector<std::string>& added_plugins();

// Returns how a run names a loaded plugin to workers, with the CRC-32C of its content: "1a2b3c4d:mine.py".
std::string pinned_plugin(const std::string& path);
// Adds a plugin that is so named. Throws InputError where the file has another content by now.
void add_pinned_plugin(const std::string& pinned);

// Loads the plugins that `plugins` of a config's root names, before anything else of the config is read. Returns all
// plugins of the config: those that were added, then its own.
std::vector<std::string> load_plugins_of(const base::ConfigNode& root);

}  // namespace collimate::recipe

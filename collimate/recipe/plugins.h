#pragma once

#include <string>
#include <vector>

#include "collimate/base/config_node.h"

namespace collimate::recipe {

// Loads a plugin, a shared library (recipe/plugin_form.h) or a Python file (recipe/python_plugin.h), once in a process:
// it registers its parts. Its file may not change from then on. Not thread-safe. InputError, which begins with `where`
// and names the file, where it is none, is built for another Collimate, cannot be loaded or throws; the same again for
// a plugin that has failed.
void load_plugin(const std::string& path, const std::string& where = "plugins");

// Loads a plugin and makes it one of every config that this process reads: `--plugin FILE`.
void add_plugin(const std::string& path);
const std::vector<std::string>& added_plugins();

// A loaded plugin with its content, as a run names it to workers: "1a2b3c4d:mine.py".
std::string pinned_plugin(const std::string& path);
// Adds one that is so named. InputError where the file has another content by now.
void add_pinned_plugin(const std::string& pinned);

// Loads what the `plugins` of a config's root names, before anything else of it is read. Gives all its plugins: those
// that were added, then its own.
std::vector<std::string> load_plugins_of(const base::ConfigNode& root);

}  // namespace collimate::recipe

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/config.h"
#include "collimate/base/config_yaml.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_path.h"
#include "collimate/base/read_file.h"

namespace collimate::base {

void merge(ConfigNode& into, ConfigNode&& from) {
  if (into.kind != ConfigNode::Kind::kMap || from.kind != ConfigNode::Kind::kMap) {
    into = std::move(from);
    return;
  }
  for (size_t i = 0; i < from.keys.size(); ++i) merge(into.child(from.keys[i]), std::move(from.children[i]));
}

namespace {

namespace fs = std::filesystem;
using Kind = ConfigNode::Kind;

ConfigNode take_include(ConfigNode& root) {
  const auto key = std::find(root.keys.begin(), root.keys.end(), "include");
  if (key == root.keys.end()) return {};
  const auto position = std::distance(root.keys.begin(), key);
  ConfigNode include = std::move(root.children[position]);
  root.keys.erase(key);
  root.children.erase(root.children.begin() + position);
  return include;
}

std::string read_config_file(const fs::path& path, const std::string& included_at) {
  std::error_code ignored;
  const std::string where = included_at.empty() ? path.string() : included_at;
  if (fs::is_directory(path, ignored)) {
    const std::string inside = nearest_file(path / "config.yaml", {".yaml", ".yml"});
    throw InputError(expectation(where, "a configuration file", "a directory",
                                 inside.starts_with("a path from ") ? "the path of a YAML file" : inside));
  }
  if (!fs::exists(path, ignored))
    throw InputError(expectation(where, "a configuration file",
                                 included_at.empty() ? "no such file" : fmt::format("no file {}", path.string()),
                                 nearest_file(path, {".yaml", ".yml"})));
  return read_file(path);
}

// Forms says in which forms the values of the declared options may be written, by path.
struct Forms {
  explicit Forms(const Section* schema) {
    std::vector<OptionInfo> options;
    if (schema != nullptr) schema->describe_section("", options);
    for (const OptionInfo& option : options) {
      if (option.list) lists.insert(option.path);
      if (!option.scalar_key.empty()) scalar_keys[option.path] = option.scalar_key;
    }
  }

  std::set<std::string> lists;
  std::map<std::string, std::string> scalar_keys;  // by path of a map of sections
};

// Returns null where the node has no such key.
ConfigNode* child_of(ConfigNode& node, const std::string& key) {
  const auto found = std::find(node.keys.begin(), node.keys.end(), key);
  return found == node.keys.end() ? nullptr : &at(node.children, found - node.keys.begin());
}

// Turns each scalar that stands for a section into that section, so that it can be merged with another.
void widen_scalars(ConfigNode& root, const Forms& forms) {
  for (const auto& [path, key] : forms.scalar_keys) {
    ConfigNode* map = &root;
    for (const std::string& part : split_path(path)) map = map == nullptr ? nullptr : child_of(*map, part);
    if (map == nullptr) continue;
    for (ConfigNode& section : map->children) section = section_of_scalar(std::move(section), key);
  }
}

struct Reading {
  Forms forms;
  std::vector<fs::path> open_files = {};
};

ConfigNode load_node(const fs::path& path, const std::string& included_at, Reading& reading);

ConfigNode resolve_includes(ConfigNode root, const fs::path& directory, Reading& reading) {
  ConfigNode include = take_include(root);
  expand_environment(include);
  ConfigNode merged{Kind::kMap, "", false, root.where};
  for (const ConfigNode* entry : list_entries(include)) {
    if (entry->kind != Kind::kScalar || entry->text.empty()) {
      throw InputError(expectation(entry->where, "include to be a file or a list of files", entry->description()));
    }
    merge(merged, load_node(directory / entry->text, entry->where, reading));
  }
  widen_scalars(root, reading.forms);
  if (root.kind != Kind::kNull) merge(merged, std::move(root));
  return merged;
}

ConfigNode load_node(const fs::path& path, const std::string& included_at, Reading& reading) {
  const std::string text = read_config_file(path, included_at);
  const fs::path identity = fs::weakly_canonical(path);
  std::vector<fs::path>& open_files = reading.open_files;
  if (std::find(open_files.begin(), open_files.end(), identity) != open_files.end()) {
    throw InputError(expectation(included_at, "includes without a circle", path.string() + " again"));
  }
  open_files.push_back(identity);
  ConfigNode root = resolve_includes(parse_yaml(text, path.string()), path.parent_path(), reading);
  open_files.pop_back();
  expect_map(root, "");
  return root;
}

bool is_index(const std::string& part) {
  return !part.empty() && part.size() < 7 && part.find_first_not_of("0123456789") == std::string::npos;
}

// Returns entry `part` of a list. A node that is no list counts as its own only entry.
ConfigNode& list_entry(ConfigNode& node, const std::string& part, const std::string& where) {
  const bool alone = node.kind == Kind::kMap || node.kind == Kind::kScalar;
  const size_t count = alone ? 1 : node.children.size();
  if (is_index(part) && std::stoul(part) < count) return alone ? node : node.children[std::stoul(part)];
  const std::string expected =
      count == 0 ? "a list with entries" : fmt::format("an entry 0 to {} of the list", count - 1);
  throw InputError(expectation(where, expected, count == 0 ? "none" : part));
}

// `list` says that the options declare a list here.
ConfigNode& descend(ConfigNode& node, const std::string& part, const std::string& where, bool list) {
  if (node.kind == Kind::kList || (list && is_index(part))) return list_entry(node, part, where);
  if (node.kind == Kind::kScalar) {
    throw InputError(expectation(where, fmt::format("a section that has a key \"{}\"", part), node.description()));
  }
  node.kind = Kind::kMap;
  ConfigNode& child = node.child(part);
  if (child.where.empty()) child.where = where;
  return child;
}

void override_value(ConfigNode& root, const std::string& assignment, const Forms& forms) {
  const size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const auto parts = split_path(path);
  if (equals == std::string::npos || std::find(parts.begin(), parts.end(), "") != parts.end()) {
    throw InputError(expectation("--set", "section.key=value", fmt::format("\"{}\"", assignment)));
  }
  const std::string where = "--set " + path;
  ConfigNode* node = &root;
  std::string at, above;
  for (const auto& part : parts) {
    if (const auto key = forms.scalar_keys.find(above); key != forms.scalar_keys.end())
      *node = section_of_scalar(std::move(*node), key->second);
    node = &descend(*node, part, where, forms.lists.contains(at));
    above = std::exchange(at, join_path(at, part));
  }
  *node = parse_yaml_value(assignment.substr(equals + 1), where);
}

void override_all(ConfigNode& root, const std::vector<std::string>& sets, const Forms& forms) {
  for (const auto& assignment : sets) override_value(root, assignment, forms);
  expand_environment(root);
}

}  // namespace

void override_values(ConfigNode& root, const std::vector<std::string>& sets, const Section* schema) {
  override_all(root, sets, Forms(schema));
}

ConfigSource load_config(const fs::path& path, const std::vector<std::string>& sets, const Section* schema) {
  Reading reading{Forms(schema)};
  ConfigSource source{load_node(path, "", reading)};
  override_all(source.root, sets, reading.forms);
  return source;
}

ConfigSource parse_config(const std::string& text, const std::string& file_name, const std::vector<std::string>& sets,
                          const Section* schema) {
  Reading reading{Forms(schema)};
  ConfigSource source{resolve_includes(parse_yaml(text, file_name), fs::path(file_name).parent_path(), reading)};
  override_all(source.root, sets, reading.forms);
  return source;
}

}  // namespace collimate::base

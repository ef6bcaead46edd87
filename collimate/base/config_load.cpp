#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

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
  if (!fs::exists(path, ignored) || fs::is_directory(path, ignored)) {
    throw InputError(expectation(included_at.empty() ? path.string() : included_at, "a configuration file",
                                 included_at.empty() ? "no such file" : fmt::format("no file {}", path.string()),
                                 nearest_path(path)));
  }
  return read_file(path);
}

ConfigNode load_node(const fs::path& path, const std::string& included_at, std::vector<fs::path>& open_files);

ConfigNode resolve_includes(ConfigNode root, const fs::path& directory, std::vector<fs::path>& open_files) {
  ConfigNode include = take_include(root);
  expand_environment(include);
  ConfigNode merged{Kind::kMap, "", false, root.where};
  for (const ConfigNode* entry : list_entries(include)) {
    if (entry->kind != Kind::kScalar || entry->text.empty()) {
      throw InputError(expectation(entry->where, "include to be a file or a list of files", entry->description()));
    }
    merge(merged, load_node(directory / entry->text, entry->where, open_files));
  }
  if (root.kind != Kind::kNull) merge(merged, std::move(root));
  return merged;
}

ConfigNode load_node(const fs::path& path, const std::string& included_at, std::vector<fs::path>& open_files) {
  const std::string text = read_config_file(path, included_at);
  const fs::path identity = fs::weakly_canonical(path);
  if (std::find(open_files.begin(), open_files.end(), identity) != open_files.end()) {
    throw InputError(expectation(included_at, "includes without a circle", path.string() + " again"));
  }
  open_files.push_back(identity);
  ConfigNode root = resolve_includes(parse_yaml(text, path.string()), path.parent_path(), open_files);
  open_files.pop_back();
  expect_map(root, "");
  return root;
}

bool is_index(const std::string& part) {
  return !part.empty() && part.size() < 7 && part.find_first_not_of("0123456789") == std::string::npos;
}

// Entry `part` of a list; what is no list is the one entry of it.
ConfigNode& list_entry(ConfigNode& node, const std::string& part, const std::string& where) {
  const bool alone = node.kind == Kind::kMap || node.kind == Kind::kScalar;
  const size_t count = alone ? 1 : node.children.size();
  if (is_index(part) && std::stoul(part) < count) return alone ? node : node.children[std::stoul(part)];
  const std::string expected =
      count == 0 ? "a list with entries" : fmt::format("an entry 0 to {} of the list", count - 1);
  throw InputError(expectation(where, expected, count == 0 ? "none" : part));
}

// `list`: the options declare one here.
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

// Paths of the lists that the options declare.
std::set<std::string> list_paths(const Section* schema) {
  std::vector<OptionInfo> options;
  if (schema != nullptr) schema->describe_section("", options);
  std::set<std::string> paths;
  for (const OptionInfo& option : options) {
    if (option.list) paths.insert(option.path);
  }
  return paths;
}

void override_value(ConfigNode& root, const std::string& assignment, const std::set<std::string>& lists) {
  const size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  const auto parts = split_path(path);
  if (equals == std::string::npos || std::find(parts.begin(), parts.end(), "") != parts.end()) {
    throw InputError(expectation("--set", "section.key=value", fmt::format("\"{}\"", assignment)));
  }
  const std::string where = "--set " + path;
  ConfigNode* node = &root;
  std::string at;
  for (const auto& part : parts) {
    node = &descend(*node, part, where, lists.contains(at));
    at = join_path(at, part);
  }
  *node = parse_yaml_value(assignment.substr(equals + 1), where);
}

ConfigSource finish(ConfigNode root, const std::vector<std::string>& sets, const Section* schema) {
  override_values(root, sets, schema);
  return {std::move(root)};
}

}  // namespace

void override_values(ConfigNode& root, const std::vector<std::string>& sets, const Section* schema) {
  const std::set<std::string> lists = list_paths(schema);
  for (const auto& assignment : sets) override_value(root, assignment, lists);
  expand_environment(root);
}

ConfigSource load_config(const fs::path& path, const std::vector<std::string>& sets, const Section* schema) {
  std::vector<fs::path> open_files;
  return finish(load_node(path, "", open_files), sets, schema);
}

ConfigSource parse_config(const std::string& text, const std::string& file_name, const std::vector<std::string>& sets,
                          const Section* schema) {
  std::vector<fs::path> open_files;
  ConfigNode root = parse_yaml(text, file_name);
  return finish(resolve_includes(std::move(root), fs::path(file_name).parent_path(), open_files), sets, schema);
}

}  // namespace collimate::base

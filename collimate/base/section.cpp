#include "collimate/base/section.h"

#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/section_map.h"

namespace collimate::base {

bool only_with::is_switched_on(const nlohmann::json& value) {
  return !value.is_null() && value != false && value != 0 && value != "off";
}

void Section::add_item(ConfigItem* item) {
  offsets_.push_back(reinterpret_cast<const char*>(item) - reinterpret_cast<const char*>(this));
}

std::vector<const ConfigItem*> Section::section_items() const {
  std::vector<const ConfigItem*> items;
  for (const std::ptrdiff_t offset : offsets_) {
    items.push_back(reinterpret_cast<const ConfigItem*>(reinterpret_cast<const char*>(this) + offset));
  }
  return items;
}

void Section::read_section(const ConfigNode& node, const std::string& path) {
  const auto items = section_items();
  expect_map(node, path, items.empty() || path.empty() ? "" : items.front()->item_name());
  for (size_t i = 0; i < node.keys.size(); ++i) {
    ConfigItem* found = nullptr;
    for (const ConfigItem* item : section_items())
      if (item->item_name() == node.keys[i]) found = const_cast<ConfigItem*>(item);  // a member of *this
    COLLIMATE_CHECK(found != nullptr, "{} of {}", node.keys[i], section_title(path));
    found->item_read(node.children[i], join_path(path, node.keys[i]));
  }
}

void Section::check_section(const std::string& path) const {
  for (const ConfigItem* item : section_items()) item->item_check(join_path(path, item->item_name()));
  section_demands(path);
}

ConfigNode Section::section_value(bool hashed_only) const {
  ConfigNode out{ConfigNode::Kind::kMap};
  for (const ConfigItem* item : section_items()) {
    if (!hashed_only || item->item_hashed()) out.child(item->item_name()) = item->item_value(hashed_only);
  }
  return out;
}

void Section::describe_section(const std::string& path, std::vector<OptionInfo>& out) const {
  for (const ConfigItem* item : section_items()) item->item_describe(join_path(path, item->item_name()), out);
}

std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string section_title(const std::string& path) { return path.empty() ? "the configuration" : "section " + path; }

void expect_map(const ConfigNode& node, const std::string& path, const std::string& key) {
  if (node.kind == ConfigNode::Kind::kMap || node.kind == ConfigNode::Kind::kNull) return;
  const std::string name = path.substr(path.rfind('.') + 1);
  throw InputError(expectation(node.where, section_title(path) + " to be a mapping of keys", node.description(),
                               key.empty() ? "" : fmt::format("{}: {{{}: …}}", name, key)));
}

ConfigNode section_of_scalar(ConfigNode node, const std::string& key) {
  if (key.empty() || node.kind != ConfigNode::Kind::kScalar) return node;
  ConfigNode section{.kind = ConfigNode::Kind::kMap, .where = node.where};
  section.child(key) = std::move(node);
  return section;
}

std::vector<const ConfigNode*> list_entries(const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kNull) return {};
  if (node.kind != ConfigNode::Kind::kList) return {&node};
  std::vector<const ConfigNode*> entries;
  for (const auto& child : node.children) entries.push_back(&child);
  return entries;
}

}  // namespace collimate::base

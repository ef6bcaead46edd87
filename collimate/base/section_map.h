#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/section.h"

namespace collimate::base {

// A SectionMap holds sections of one kind under names that the user chooses: `models: {policy: {path: ...}, reference:
// {...}}`. It keeps them in written order. When a name is read again, its section is changed. With `scalar_key` a
// scalar stands for a section with that key alone: `models: {policy: DIR}`.
template <class S>
class SectionMap : public ConfigItem {
 public:
  SectionMap(Section* parent, std::string name, std::string help, std::string scalar_key = "")
      : ConfigItem(std::move(name), std::move(help)), scalar_key_(std::move(scalar_key)) {
    parent->add_item(this);
  }
  SectionMap(const SectionMap&) = default;
  SectionMap& operator=(const SectionMap&) = default;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // Returns "config.yaml:12" where the user named the section, or "" when code added the name or there is none such.
  std::string where(const std::string& name) const {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].first == name) return places_[i];
    }
    return "";
  }
  // Returns null when the name is absent.
  const S* find(const std::string& name) const {
    for (const auto& entry : entries_) {
      if (entry.first == name) return &entry.second;
    }
    return nullptr;
  }
  // Returns the section, which is added with its defaults when the name is absent.
  S& operator[](const std::string& name) { return entries_[position(name)].second; }

  void item_read(const ConfigNode& node, const std::string& path) override;
  void item_check(const std::string& path) const override {
    for (const auto& entry : entries_) entry.second.check_section(join_path(path, entry.first));
  }
  ConfigNode item_value(bool hashed_only) const override {
    ConfigNode out{ConfigNode::Kind::kMap};
    for (const auto& entry : entries_) out.child(entry.first) = entry.second.section_value(hashed_only);
    return out;
  }
  void item_describe(const std::string& path, std::vector<OptionInfo>& out) const override {
    out.push_back({path, "map of sections", "", "", item_help(), "", false, scalar_key_});
    S().describe_section(join_path(path, "<name>"), out);
  }

 private:
  size_t position(const std::string& name) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].first == name) return i;
    }
    entries_.emplace_back(name, S());
    places_.emplace_back();
    return entries_.size() - 1;
  }

  std::string scalar_key_;
  std::vector<std::pair<std::string, S>> entries_;
  std::vector<std::string> places_;  // by entry
};

// Throws InputError unless `node` is a map or nothing. The error shows a map with `key` as an example unless `key` is
// empty.
void expect_map(const ConfigNode& node, const std::string& path, const std::string& key = "");
// Returns a scalar as a section that has it at `key`. Returns any other node, and every node where `key` is empty, as
// it is.
ConfigNode section_of_scalar(ConfigNode node, const std::string& key);
// Returns the entries of a list, or `node` itself as the only entry. Returns none for a null node.
std::vector<const ConfigNode*> list_entries(const ConfigNode& node);

template <class S>
void SectionMap<S>::item_read(const ConfigNode& node, const std::string& path) {
  expect_map(node, path);
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const size_t at = position(node.keys[i]);
    places_[at] = node.children[i].where;
    entries_[at].second.read_section(section_of_scalar(node.children[i], scalar_key_), join_path(path, node.keys[i]));
  }
}

}  // namespace collimate::base

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

using base::ConfigNode;
using nlohmann::json;

json resolved(const ConfigNode& entry, const std::string& path, base::Section& section) {
  base::apply(entry, path, section);
  return base::to_json(section.section_value());
}

// Resolves the keys that every function's entry has and leaves the function's own keys as they are.
json resolved_function(const ConfigNode& entry, const std::string& path) {
  FunctionSection section;
  ConfigNode known{ConfigNode::Kind::kMap, "", false, entry.where};
  for (const base::ConfigItem* item : section.section_items())
    if (const ConfigNode* value = entry.find(item->item_name())) known.child(item->item_name()) = *value;
  json all = base::to_json(entry);
  all.update(resolved(known, path, section));
  return all;
}

json resolved_entry(const ConfigNode& entry, const std::string& path) {
  check_reward(base::to_json(entry), entry.where);
  if (const ConfigNode* rule = entry.find("rule")) {
    if (rule->kind != ConfigNode::Kind::kScalar)
      throw base::InputError(base::expectation(rule->where, path + ".rule to be a name", rule->description()));
    return resolved(entry, path, *find_rule(rule->text, rule->where).section());
  }
  if (entry.find("function") != nullptr) return resolved_function(entry, path);
  PythonSection section;
  return resolved(entry, path, section);
}

}  // namespace

json resolved_rewards(const ConfigNode& list, const std::string& path) {
  const bool many = list.kind == ConfigNode::Kind::kList;
  json out = json::array();
  for (const ConfigNode* entry : base::list_entries(list))
    out.push_back(resolved_entry(*entry, many ? fmt::format("{}.{}", path, out.size()) : path));
  return out;
}

std::vector<std::string> reward_rights() {
  const PythonSection section;
  std::vector<std::string> keys;
  for (const base::ConfigItem* item : section.section_items())
    if (!item->item_hashed()) keys.push_back(item->item_name());
  return keys;
}

json hashed_rewards(const json& list) {
  if (list.is_object()) return hashed_rewards(json::array({list})).at(0);
  json hashed = list;
  for (json& entry : hashed)
    if (entry.is_object() && entry.contains("python"))
      for (const std::string& right : reward_rights()) entry.erase(right);
  return hashed;
}

}  // namespace collimate::rlhf

#include <set>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/graph/json_fields.h"
#include "collimate/graph/placement.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

constexpr int kPlacementVersion = 1;
constexpr int64_t kMostCounted = 1 << 20;  // devices of a group that gives a number instead of a list

json to_json(const Layout& layout) {
  json made = layout;
  for (const char* unusual : {"recompute", "offload"})
    if (made.at(unusual) == false) made.erase(unusual);
  if (layout.cp_kind == Layout().cp_kind) made.erase("cp_kind");
  if (layout.virtual_stages == 1) made.erase("virtual_stages");
  if (layout.stages.empty()) made.erase("stages");
  return made;
}

// Groups that give the number of their devices instead of a list take the first devices that no group lists and no
// group before took. The numbers become lists. A placement that does not say how many devices it has gets as many as
// the lists need.
json with_lists(json value) {
  if (!value.is_object() || !value.contains("groups") || !value.at("groups").is_object()) return value;
  std::set<int> taken;
  std::vector<json*> counts;
  for (auto& [name, group] : value["groups"].items()) {
    if (!group.is_object() || !group.contains("devices")) continue;
    json& devices = group["devices"];
    if (devices.is_number_integer() && devices.get<int64_t>() > 0 && devices.get<int64_t>() <= kMostCounted)
      counts.push_back(&devices);
    else if (devices.is_array())
      for (const json& device : devices)
        if (device.is_number_integer()) taken.insert(device.get<int>());
  }
  for (json* devices : counts) {
    std::vector<int> list;
    for (int next = 0; std::ssize(list) < devices->get<int64_t>(); ++next)
      if (taken.insert(next).second) list.push_back(next);
    *devices = list;
  }
  if (!counts.empty() && !value.contains("devices")) value["devices"]["count"] = *taken.rbegin() + 1;
  return value;
}

Placement from_json(const json& given, const std::string& where) {
  const json value = with_lists(given);
  JsonFields fields(value, where);
  if (int version = fields.get("version", kPlacementVersion); version != kPlacementVersion)
    throw base::InputError(
        base::expectation(where + ".version", std::to_string(kPlacementVersion), std::to_string(version)));
  fields.find("request");  // the planner's request, which is ignored
  Placement placement;
  const json devices_json = fields.require<json>("devices");
  JsonFields devices(devices_json, where + ".devices");
  placement.devices = devices.require<int>("count");
  placement.kind = devices.get("kind", placement.kind);
  devices.finish();
  Placement::fields(placement, [&](const char* key, auto& field) { field = fields.get(key, field); });
  for (const auto& [name, group] : placement.groups)
    JsonFields(fields.find("groups")->at(name), where + ".groups." + name).require<json>("devices");
  fields.finish();
  return placement;
}

// Writes maps of maps in block style and everything else in flow style, where JSON is YAML.
void write_yaml(const json& value, int depth, int block_depth, std::string& out) {
  for (const auto& [key, child] : value.items()) {
    const bool block = child.is_object() && !child.empty() && depth < block_depth;
    out += fmt::format("{:{}}{}:{}\n", "", 2 * depth, key, block ? "" : fmt::format(" {}", child.dump()));
    if (block) write_yaml(child, depth + 1, block_depth, out);
  }
}

}  // namespace

json to_json(const Placement& placement) {
  json layouts = json::object();
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) layouts[model][function] = to_json(layout);
  json made = placement;
  made["version"] = kPlacementVersion;
  made["devices"] = {{"count", placement.devices}, {"kind", placement.kind}};
  made["layouts"] = layouts;
  return made;
}

std::string json_text(const Placement& placement) { return to_json(placement).dump(2) + "\n"; }

std::string yaml_text(const Placement& placement) {
  std::string out;
  write_yaml(to_json(placement), 0, 2, out);
  return out;
}

Placement parse_placement(std::string_view text, const std::string& where) {
  return from_json(base::to_json(base::parse_config(std::string(text), where).root), where);
}

}  // namespace collimate::graph

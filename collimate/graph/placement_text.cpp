#include "collimate/base/config.h"
#include "collimate/graph/json_fields.h"
#include "collimate/graph/placement.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

constexpr Words<Residency, 2> kResidencies{"residency", {"device", "swap"}};
constexpr int kPlacementVersion = 1;

json to_json(const Layout& layout) {
  json made = {{"tp", layout.tp},
               {"pp", layout.pp},
               {"cp", layout.cp},
               {"ep", layout.ep},
               {"dp", layout.dp},
               {"zero", layout.zero},
               {"micro_batch", layout.micro_batch}};
  if (layout.recompute) made["recompute"] = true;
  if (layout.offload) made["offload"] = true;
  return made;
}

Layout layout_from_json(const json& value, const std::string& where) {
  JsonFields fields(value, where);
  Layout layout;
  layout.tp = fields.get("tp", layout.tp);
  layout.pp = fields.get("pp", layout.pp);
  layout.cp = fields.get("cp", layout.cp);
  layout.ep = fields.get("ep", layout.ep);
  layout.dp = fields.get("dp", layout.dp);
  layout.zero = fields.get("zero", layout.zero);
  layout.micro_batch = fields.get("micro_batch", layout.micro_batch);
  layout.recompute = fields.get("recompute", layout.recompute);
  layout.offload = fields.get("offload", layout.offload);
  fields.finish();
  return layout;
}

ResourceGroup group_from_json(const json& value, const std::string& where) {
  JsonFields fields(value, where);
  ResourceGroup group{fields.require<std::vector<int>>("devices"), fields.get<std::vector<std::string>>("models", {})};
  fields.finish();
  return group;
}

// The entries of a table under `key`; none when it is absent.
std::map<std::string, json> table(JsonFields& fields, const char* key) {
  const json* found = fields.find(key);
  if (found == nullptr || found->is_null()) return {};
  JsonFields checked(*found, fields.where() + "." + key);
  return found->get<std::map<std::string, json>>();
}

void read_layouts(JsonFields& fields, Placement& placement) {
  for (const auto& [model, functions] : table(fields, "layouts")) {
    const std::string where = fields.where() + ".layouts." + model;
    JsonFields checked(functions, where);
    for (const auto& [function, layout] : functions.items())
      placement.layouts[model][function] = layout_from_json(layout, where + "." + function);
  }
}

Placement from_json(const json& value, const std::string& where) {
  JsonFields fields(value, where);
  if (int version = fields.get("version", kPlacementVersion); version != kPlacementVersion)
    throw base::InputError(
        base::expectation(where + ".version", std::to_string(kPlacementVersion), std::to_string(version)));
  fields.find("request");  // the planner's own: what was asked for
  Placement placement;
  const json devices = fields.require<json>("devices");
  JsonFields device_fields(devices, where + ".devices");
  placement.devices = device_fields.require<int>("count");
  placement.kind = device_fields.get("kind", placement.kind);
  device_fields.finish();
  for (const auto& [name, group] : table(fields, "groups"))
    placement.groups[name] = group_from_json(group, where + ".groups." + name);
  read_layouts(fields, placement);
  for (const auto& [model, word] : table(fields, "residency"))
    placement.residency[model] =
        kResidencies.parse(where + ".residency." + model, word.is_string() ? word.get<std::string>() : word.dump());
  placement.hosts = fields.get("hosts", placement.hosts);
  placement.staleness = fields.get("staleness", placement.staleness);
  fields.finish();
  return placement;
}

// Maps of maps in block style, everything else in flow style, where JSON is YAML.
void write_yaml(const json& value, int depth, int block_depth, std::string& out) {
  for (const auto& [key, child] : value.items()) {
    const bool block = child.is_object() && !child.empty() && depth < block_depth;
    out += fmt::format("{:{}}{}:{}\n", "", 2 * depth, key, block ? "" : fmt::format(" {}", child.dump()));
    if (block) write_yaml(child, depth + 1, block_depth, out);
  }
}

}  // namespace

json to_json(const Placement& placement) {
  json groups = json::object(), layouts = json::object(), residency = json::object();
  for (const auto& [name, group] : placement.groups)
    groups[name] = {{"devices", group.devices}, {"models", group.models}};
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) layouts[model][function] = to_json(layout);
  for (const auto& [model, where] : placement.residency) residency[model] = kResidencies.name(where);
  return {{"version", kPlacementVersion},
          {"devices", {{"count", placement.devices}, {"kind", placement.kind}}},
          {"groups", groups},
          {"layouts", layouts},
          {"residency", residency},
          {"hosts", placement.hosts},
          {"staleness", placement.staleness}};
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

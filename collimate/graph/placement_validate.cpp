#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "collimate/graph/json_fields.h"
#include "collimate/graph/placement.h"

namespace collimate::graph {
namespace {

[[noreturn]] void misplaced(const std::string& where, const std::string& expected, const std::string& got,
                            const std::string& remedy = "") {
  throw base::InputError(base::expectation("placement" + where, expected, got, remedy));
}

void check_known(const Graph& graph, const std::string& where, const std::string& model) {
  if (graph.models.count(model)) return;
  std::vector<std::string> known;
  for (const auto& [name, spec] : graph.models) known.push_back(name);
  misplaced(where, "a model out of " + join(known), "'" + model + "'");
}

// Returns the remedy for groups that use more devices than there are: "devices.count: 4, as generation has 2, …".
std::string count_of_all(const Placement& placement) {
  std::set<int> all;
  std::vector<std::string> parts;
  for (const auto& [name, group] : placement.groups) {
    all.insert(group.devices.begin(), group.devices.end());
    parts.push_back(fmt::format("{} has {}", name, group.devices.size()));
  }
  return fmt::format("devices.count: {}, as {}", std::max(static_cast<int>(all.size()), *all.rbegin() + 1),
                     fmt::join(parts, ", "));
}

void check_groups(const Graph& graph, const Placement& placement) {
  std::set<std::string> placed;
  for (const auto& [name, group] : placement.groups) {
    const std::string where = ".groups." + name;
    if (group.devices.empty()) misplaced(where, "at least one device", "none");
    std::set<int> used;
    for (int device : group.devices) {
      if (device < 0 || device >= placement.devices)
        misplaced(where, fmt::format("devices 0 to {} ({} in all)", placement.devices - 1, placement.devices),
                  std::to_string(device), device < 0 ? "" : count_of_all(placement));
      if (!used.insert(device).second) misplaced(where, "each device once", fmt::format("device {} twice", device));
    }
    for (const std::string& model : group.models) {
      check_known(graph, where, model);
      if (!placed.insert(model).second) misplaced(where, "each model in one group", model + " in two");
    }
  }
}

void check_homes(const Graph& graph, const Placement& placement) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (placement.group_of(node.model) != nullptr || graph.spec(static_cast<int>(i)).kind == Kind::kHost) continue;
    misplaced(".groups", "a group with model " + node.model, "none", "adding it to the models of a group");
  }
  for (const auto& [model, count] : placement.hosts) {
    check_known(graph, ".hosts", model);
    if (count < 1) misplaced(".hosts." + model, "at least 1 worker", std::to_string(count));
    if (placement.group_of(model) != nullptr) misplaced(".hosts." + model, "a model in no group", "one in a group");
  }
}

void check_stages(const std::string& where, const Layout& layout) {
  if (layout.virtual_stages < 1)
    misplaced(where + ".virtual_stages", "at least 1", std::to_string(layout.virtual_stages));
  if (layout.virtual_stages > 1 && layout.pp == 1)
    misplaced(where + ".virtual_stages", "1 of a layout with pp 1", std::to_string(layout.virtual_stages),
              "pp: 2, or leaving it out");
  if (layout.stages.empty()) return;
  const std::string stages = fmt::format("[{}]", fmt::join(layout.stages, ", "));
  if (std::ssize(layout.stages) != layout.pp * layout.virtual_stages)
    misplaced(where + ".stages",
              fmt::format("the blocks of each of the {} stages that pp{} says", layout.pp * layout.virtual_stages,
                          layout.virtual_stages > 1 ? " times virtual_stages" : ""),
              stages,
              layout.virtual_stages > 1 ? "one number for each of them" : fmt::format("pp: {}", layout.stages.size()));
  if (std::ranges::min(layout.stages) < 1) misplaced(where + ".stages", "at least 1 block in each stage", stages);
}

void check_sizes(const std::string& where, const Layout& layout) {
  const std::pair<const char*, int> sizes[] = {
      {"tp", layout.tp}, {"pp", layout.pp}, {"cp", layout.cp}, {"ep", layout.ep}};
  for (const auto& [name, size] : sizes)
    if (size < 1) misplaced(where + "." + name, "at least 1", std::to_string(size));
  if (layout.dp < 0) misplaced(where + ".dp", "0 (by the devices) or more", std::to_string(layout.dp));
  if (layout.zero < 0 || layout.zero > 3) misplaced(where + ".zero", "0 to 3", std::to_string(layout.zero));
  if (layout.cp == 1 && layout.cp_kind != Layout().cp_kind)
    misplaced(where + ".cp_kind", "it beside a cp above 1", words_of(layout.cp_kind).name(layout.cp_kind),
              "cp: 2, or leaving it out");
  if (layout.micro_batch < 0) misplaced(where + ".micro_batch", "0 or more rows", std::to_string(layout.micro_batch));
  check_stages(where, layout);
}

// Checks one layout on the devices of its model's group.
void check_layout(const std::string& where, const Layout& layout, const FunctionSpec& spec, int devices) {
  check_sizes(where, layout);
  const int inner = layout.tp * layout.pp * layout.cp;
  const int ranks = layout.dp > 0 ? inner * layout.dp : inner;
  const std::string product = fmt::format("tp {} · pp {} · cp {}{} = {}", layout.tp, layout.pp, layout.cp,
                                          layout.dp > 0 ? fmt::format(" · dp {}", layout.dp) : "", ranks);
  if (ranks > devices || devices % ranks != 0)
    misplaced(where, fmt::format("a layout whose ranks divide the {} devices of its group", devices), product);
  if (spec.kind == Kind::kTrain && layout.dp > 0 && ranks != devices)
    misplaced(where, fmt::format("a training layout on all {} devices of its group", devices), product,
              fmt::format("dp {} or leaving dp out", devices / inner));
  const int dp = layout.dp > 0 ? layout.dp : (spec.kind == Kind::kTrain ? devices / inner : 1);
  if (dp * layout.cp * layout.tp % layout.ep != 0)
    misplaced(where + ".ep", fmt::format("a divisor of dp {} · cp {} · tp {}", dp, layout.cp, layout.tp),
              std::to_string(layout.ep));
}

void check_layouts(const Graph& graph, const Placement& placement) {
  for (const auto& [model, functions] : placement.layouts) {
    check_known(graph, ".layouts", model);
    const ResourceGroup* group = placement.group_of(model);
    if (group == nullptr) misplaced(".layouts." + model, "a model in a group", "a host model");
    for (const auto& [function, layout] : functions) {
      const FunctionSpec* spec = graph.find_function(model, function);
      if (spec == nullptr) misplaced(".layouts." + model, "a function of " + model, "'" + function + "'");
      check_layout(".layouts." + model + "." + function, layout, *spec, static_cast<int>(group->devices.size()));
    }
  }
}

}  // namespace

void validate(const Graph& graph, const Placement& placement) {
  if (placement.devices < 1) misplaced(".devices.count", "at least 1", std::to_string(placement.devices));
  if (placement.staleness < 0) misplaced(".staleness", "0 or more iterations", std::to_string(placement.staleness));
  check_groups(graph, placement);
  check_homes(graph, placement);
  check_layouts(graph, placement);
  for (const auto& [model, residency] : placement.residency) check_known(graph, ".residency", model);
}

}  // namespace collimate::graph

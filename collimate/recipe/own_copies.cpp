#include "collimate/recipe/own_copies.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/line_groups.h"

namespace collimate::recipe {
namespace {

// Holds the lines of workers that a worker stands in: along tp, along pp, and those that share experts; and what the
// layout says of stages. Two functions with equal ones have the same pieces of the weights on that
// worker.
struct Lines {
  int runs = 1;  // stages of each rank
  std::vector<int64_t> stages;
  std::vector<std::vector<int>> workers;
  bool operator==(const Lines&) const = default;
};

Lines lines_of(const comm::Mesh& mesh, const graph::Layout& layout, int worker) {
  const int ep = layout.ep;
  Lines lines{layout.virtual_stages, layout.stages, {mesh.line(worker, "tp"), mesh.line(worker, "pp"), {}}};
  if (ep == 1) return lines;
  const std::vector<int> copies = mesh.flatten({"dp", "cp"}, flow::kCopies).line(worker, flow::kCopies);
  const int first = flow::copy_number(mesh, worker) / ep * ep;
  for (int i = first; i < first + ep; ++i) lines.workers.back().push_back(base::at(copies, i));
  return lines;
}

std::vector<Lines> lines_of(const Plan& plan, const graph::Placement& placement, const std::string& model, int worker) {
  std::vector<Lines> all;
  for (const auto& [function, mesh] : flow::meshes_of(plan.graph, placement, model, worker))
    if (plan.calls(model, function)) all.push_back(lines_of(mesh, placement.layout(model, function), worker));
  return all;
}

// Returns whether a function cuts a model. This keeps searches short, which ask about placements on thousands of
// devices that cut none.
bool cuts(const Plan& plan, const graph::Placement& placement, const std::string& model) {
  return std::ranges::any_of(plan.graph.models.at(model).functions, [&](const graph::FunctionSpec& function) {
    const graph::Layout layout = placement.layout(model, function.name);
    return plan.calls(model, function.name) && layout.tp * layout.pp * layout.ep > 1;
  });
}

bool reads_other_pieces(const Plan& plan, const graph::Placement& placement, const std::string& model,
                        const std::string& trainer) {
  if (!cuts(plan, placement, model) && !cuts(plan, placement, trainer)) return false;
  const std::vector<int> trained = graph::workers_of(plan.graph, placement, trainer);
  for (const int worker : graph::workers_of(plan.graph, placement, model)) {
    if (std::ranges::find(trained, worker) == trained.end()) continue;
    for (const Lines& has : lines_of(plan, placement, trainer, worker))
      for (const Lines& reads : lines_of(plan, placement, model, worker))
        if (has != reads) return true;
  }
  return false;
}

}  // namespace

void give_own_copies(const graph::Placement& placement, Plan& plan) {
  for (const graph::WeightLink& link : plan.graph.links) {
    const auto source = plan.modules.find(link.source), reader = plan.modules.find(link.destination);
    if (source == plan.modules.end() || reader == plan.modules.end()) continue;
    if (!reader->second.parameters.contains("weights")) continue;
    nlohmann::json& weights = reader->second.parameters["weights"];
    if (weights != source->second.parameters.value("weights", nlohmann::json())) continue;
    reader->second.in_place = !reads_other_pieces(plan, placement, link.destination, link.source);
    if (reader->second.in_place) continue;
    weights = link.destination + " copy";
    reader->second.own_weights = true;
  }
}

}  // namespace collimate::recipe

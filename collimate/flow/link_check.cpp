#include "collimate/flow/link_check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/flow/dist_actor.h"
#include "collimate/flow/line_groups.h"

namespace collimate::flow {
namespace {

// A Part is what a worker holds of a model's weights: for each way of cutting, which of how many parts.
struct Part {
  int tensor_of = 1, tensor = 0;
  int stage_of = 1, stage = 0;
  int runs = 1;                 // stages of each rank
  std::vector<int64_t> stages;  // the layers of each stage, where they are said
  int expert_of = 1, experts = 0;
  int zero_of = 1, shard = 0;    // ZeRO's stage 3 cuts over dp and cp
  std::vector<int> tensor_line;  // the workers that together have all of a stage
  bool operator==(const Part&) const = default;
};

struct Check {
  const graph::WeightLink& link;
  const graph::Graph& graph;
  const graph::Placement& placement;

  graph::Layout layout(int node) const { return placement.layout(graph.node(node).model, graph.node(node).function); }

  // Returns the part that a node uses on a worker, or nothing where the node does not run.
  std::optional<Part> part(int node, int worker) const {
    const graph::Layout cut = layout(node);
    for (const graph::Replica& replica : graph::replicas(graph, placement, node)) {
      if (std::find(replica.begin(), replica.end(), worker) == replica.end()) continue;
      const DistActor actor(graph.spec(node), cut, replica);
      const comm::Mesh& mesh = actor.mesh();
      Part part{mesh.size("tp"),
                mesh.coordinate(worker, "tp"),
                mesh.size("pp"),
                mesh.coordinate(worker, "pp"),
                cut.virtual_stages,
                cut.stages,
                cut.ep};
      part.tensor_line = mesh.line(worker, "tp");
      if (part.expert_of > 1) part.experts = copy_number(mesh, worker) % part.expert_of;
      if (cut.zero < 3) return part;
      part.zero_of = mesh.size("dp") * mesh.size("cp");
      part.shard = mesh.coordinate(worker, "dp") * mesh.size("cp") + mesh.coordinate(worker, "cp");
      return part;
    }
    return std::nullopt;
  }

  std::vector<int> nodes(const std::string& model) const {
    std::vector<int> all;
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (graph.nodes[n].model == model) all.push_back(static_cast<int>(n));
    return all;
  }

  // Returns a description of a node's layout; `line` are workers to name in it, or none.
  std::string text(int node, const std::vector<int>& line = {}) const {
    const graph::Layout cut = layout(node);
    const std::string workers = line.empty() ? "" : fmt::format(" (workers {})", fmt::join(line, ", "));
    const std::string runs = cut.virtual_stages == 1 ? "" : fmt::format(" with virtual_stages {}", cut.virtual_stages);
    const std::string stages = cut.stages.empty() ? "" : fmt::format(" of {} layers", fmt::join(cut.stages, ", "));
    return fmt::format("{}.{} with tp {}{}, pp {}{}{}, ep {}, zero {}", graph.node(node).model,
                       graph.node(node).function, cut.tp, workers, cut.pp, runs, stages, cut.ep, cut.zero);
  }

  [[noreturn]] void refuse(const std::string& expected, const std::string& got, const std::string& instead) const {
    throw base::InputError(
        base::expectation(fmt::format("weights {} -> {}", link.source, link.destination), expected, got, instead));
  }

  void require_same(int worker) const {
    for (int source : nodes(link.source))
      for (int destination : nodes(link.destination)) {
        const std::optional<Part> from = part(source, worker), to = part(destination, worker);
        if (!from || !to || *from == *to) continue;
        const bool same_sizes = layout(source).tp == layout(destination).tp && from->tensor_line != to->tensor_line;
        refuse(fmt::format("the same part of the weights of both on worker {}", worker),
               same_sizes ? text(source, from->tensor_line) + " and " + text(destination, to->tensor_line)
                          : text(source) + " and " + text(destination),
               "one layout for both, or layouts of dp alone");
      }
  }
};

}  // namespace

std::optional<UnlikeCut> unlike_cut(const graph::Layout& first, const graph::Layout& second) {
  const auto cuts = [](const graph::Layout& of) {
    return std::vector<std::pair<std::string, std::string>>{{"tp", std::to_string(of.tp)},
                                                            {"pp", std::to_string(of.pp)},
                                                            {"virtual_stages", std::to_string(of.virtual_stages)},
                                                            {"stages", fmt::format("[{}]", fmt::join(of.stages, ", "))},
                                                            {"ep", std::to_string(of.ep)}};
  };
  const auto of_first = cuts(first), of_second = cuts(second);
  const auto [one, other] = std::ranges::mismatch(of_first, of_second);
  if (one == of_first.end()) return std::nullopt;
  return UnlikeCut{one->first, one->second, other->second};
}

void check_cuts(const graph::Placement& placement, const nlohmann::json& calls) {
  for (const auto& [model, functions] : calls.items()) {
    if (placement.group_of(model) == nullptr) continue;
    const auto first = functions.front().get<std::string>();
    for (const std::string function : functions)
      if (const auto unlike = unlike_cut(placement.layout(model, first), placement.layout(model, function)))
        throw base::InputError(base::expectation(
            "placement.layouts." + model,
            fmt::format("one {} for all functions of the model, whose weights they share", unlike->axis),
            fmt::format("{} with {} {} and {} with {} {}", first, unlike->axis, unlike->first, function, unlike->axis,
                        unlike->second),
            fmt::format("the same {} for both", unlike->axis)));
  }
}

void check_link(const graph::WeightLink& link, const graph::Graph& graph, const graph::Placement& placement) {
  const std::vector<int> from = graph::workers_of(graph, placement, link.source);
  const Check check{link, graph, placement};
  for (int worker : graph::workers_of(graph, placement, link.destination))
    if (std::find(from.begin(), from.end(), worker) != from.end()) check.require_same(worker);
}

}  // namespace collimate::flow

#include "collimate/plan/show/transfers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/weight_ranks.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/columns.h"

namespace collimate::plan {
namespace {

constexpr size_t kShownRoutes = 64;

std::string bytes_text(int64_t bytes) {
  const auto real = static_cast<double>(bytes);
  if (real < 1e6) return three_digits(real / (1 << 10), 2) + " KiB";
  return real < 1e9 ? three_digits(real / (1 << 20), 2) + " MiB" : three_digits(real / (1 << 30), 2) + " GiB";
}

size_t pieces_of(const LinkTransfer& transfer) {
  size_t pieces = 0;
  for (const shape::Route& route : transfer.plan.routes) pieces += route.slices.size();
  return pieces;
}

// Removes from a plan what the link does not carry.
void keep_carried(const LinkedWeights& weights, shape::TransferPlan& plan) {
  for (shape::Route& route : plan.routes)
    std::erase_if(route.slices, [&](const shape::Slice& slice) {
      return !weights.is_carried(base::at(weights.params, slice.param));
    });
  std::erase_if(plan.routes, [](const shape::Route& route) { return route.slices.empty(); });
}

std::string routes_text(const LinkTransfer& transfer) {
  std::string text;
  size_t shown = 0;
  for (const shape::Route& route : transfer.plan.routes) {
    if (++shown > kShownRoutes) break;
    const std::string way = route.source == route.destination
                                ? fmt::format("on device {}", route.source)
                                : fmt::format("device {} -> {}", route.source, route.destination);
    text += fmt::format("  {:<20} {:>12} {:>8} pieces\n", way, bytes_text(route.floats() * transfer.value_bytes),
                        route.slices.size());
  }
  if (transfer.plan.routes.size() > kShownRoutes)
    text += fmt::format("  … and {} more, which --json lists\n", transfer.plan.routes.size() - kShownRoutes);
  return text;
}

}  // namespace

LinkedWeights all_weights(const shape::ModelShape& shape, int64_t value_bytes) {
  return {shape, shape::param_specs(shape), [](const shape::ParamSpec&) { return true; }, value_bytes};
}

nlohmann::json calls_of_nodes(const graph::Graph& graph) {
  nlohmann::json calls = nlohmann::json::object();
  for (const graph::Node& node : graph.nodes) calls[node.model].push_back(node.function);
  return calls;
}

std::vector<LinkTransfer> link_transfers(const graph::Graph& graph, const graph::Placement& placement,
                                         const nlohmann::json& calls,
                                         const std::map<std::string, LinkedWeights>& weights) {
  std::vector<LinkTransfer> transfers;
  for (const graph::WeightLink& link : graph.links) {
    const auto model = weights.find(link.source);
    if (model == weights.end())
      throw base::InputError(base::expectation("transfers of " + link.source, "its shape", "none", "a config"));
    LinkTransfer& transfer = transfers.emplace_back();
    transfer.link = link;
    transfer.value_bytes = model->second.value_bytes;
    graph::LinkEnds ends = graph::link_ends(graph, placement, link.source, link.destination, calls);
    for (const shape::WeightRank& rank : ends.destinations)
      if (ends.is_here(rank.worker)) transfer.here.push_back(rank.worker);
    std::erase_if(ends.destinations, [&](const shape::WeightRank& rank) {
      return std::ranges::find(transfer.here, rank.worker) != transfer.here.end();
    });
    if (ends.destinations.empty()) continue;
    transfer.plan = shape::plan_transfer({model->second.shape, model->second.params, ends.sources, ends.destinations});
    keep_carried(model->second, transfer.plan);
  }
  return transfers;
}

std::string transfers_text(const std::vector<LinkTransfer>& transfers, int columns) {
  if (transfers.empty()) return "no weight links: nothing moves\n";
  std::string text;
  for (const LinkTransfer& transfer : transfers) {
    const graph::WeightLink& link = transfer.link;
    text += hanging(
        "weights ",
        fmt::format("{} -> {}, after {}: {} in {} pieces, {} of it between devices", link.source, link.destination,
                    link.every == 1 ? "every training" : fmt::format("every {} trainings", link.every),
                    bytes_text(transfer.plan.floats() * transfer.value_bytes), pieces_of(transfer),
                    bytes_text(transfer.plan.moved_floats() * transfer.value_bytes)),
        columns);
    text += routes_text(transfer);
    if (!transfer.here.empty())
      text += hanging(fmt::format("  in place on device{} ", transfer.here.size() == 1 ? "" : "s"),
                      fmt::format("{}", fmt::join(transfer.here, ", ")), columns);
  }
  return text;
}

nlohmann::ordered_json transfers_json(const std::vector<LinkTransfer>& transfers) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const LinkTransfer& transfer : transfers) {
    nlohmann::ordered_json routes = nlohmann::ordered_json::array();
    for (const shape::Route& route : transfer.plan.routes)
      routes.push_back({{"source", route.source},
                        {"destination", route.destination},
                        {"bytes", route.floats() * transfer.value_bytes},
                        {"pieces", route.slices.size()}});
    all.push_back({{"source", transfer.link.source},
                   {"destination", transfer.link.destination},
                   {"every", transfer.link.every},
                   {"bytes", transfer.plan.floats() * transfer.value_bytes},
                   {"bytes_between_devices", transfer.plan.moved_floats() * transfer.value_bytes},
                   {"in_place", transfer.here},
                   {"routes", routes}});
  }
  return all;
}

}  // namespace collimate::plan

#include "collimate/graph/weight_ranks.h"

#include <algorithm>

#include "collimate/graph/whole_layout.h"

namespace collimate::graph {
namespace {

// Adds a worker's place in a replica. The replica's ranks are ordered by copy (dp, then cp), stage and tensor rank, of
// which the last is the fastest.
void add_place(const Layout& layout, const Replica& replica, shape::WeightRank& rank) {
  const auto found = std::find(replica.begin(), replica.end(), rank.worker);
  if (found == replica.end()) return;
  const auto index = static_cast<int>(found - replica.begin());
  const int copies = static_cast<int>(replica.size()) / (layout.tp * layout.pp);
  const int copy = index / (layout.tp * layout.pp);
  rank.place.tensor.rank = index % layout.tp;
  rank.place.stage.rank = index / layout.tp % layout.pp;
  rank.place.experts.rank = copy % layout.ep;
  if (layout.zero <= kMostWholeZero) return;
  rank.all = {copy, copies};
  if (layout.ep > 1) rank.experts = {copy / layout.ep, copies / layout.ep};
}

}  // namespace

std::vector<shape::WeightRank> weight_ranks(const Graph& graph, const Placement& placement, const std::string& model,
                                            const std::vector<std::string>& functions) {
  std::vector<shape::WeightRank> ranks;
  for (const int worker : workers_of(graph, placement, model)) ranks.emplace_back().worker = worker;
  if (placement.group_of(model) == nullptr) return ranks;
  for (const std::string& function : functions) {
    const Layout layout = placement.layout(model, function);
    const std::vector<Replica> all = replicas(graph, placement, model, *graph.find_function(model, function));
    for (shape::WeightRank& rank : ranks) {
      rank.place.tensor.ranks = std::max(rank.place.tensor.ranks, layout.tp);
      rank.place.stage.ranks = std::max(rank.place.stage.ranks, layout.pp);
      rank.place.stage.runs = std::max(rank.place.stage.runs, layout.virtual_stages);
      if (!layout.stages.empty()) rank.place.stage.layers = layout.stages;
      rank.place.experts.ranks = std::max(rank.place.experts.ranks, layout.ep);
      for (const Replica& replica : all) add_place(layout, replica, rank);
    }
  }
  return ranks;
}

bool LinkEnds::is_here(int worker) const {
  const auto of_worker = [&](const shape::WeightRank& rank) { return rank.worker == worker; };
  const auto from = std::ranges::find_if(sources, of_worker), to = std::ranges::find_if(destinations, of_worker);
  return from != sources.end() && to != destinations.end() && from->has_same(*to);
}

LinkEnds link_ends(const Graph& graph, const Placement& placement, const std::string& source,
                   const std::string& destination, const nlohmann::json& calls) {
  const auto ranks = [&](const std::string& model) {
    return weight_ranks(graph, placement, model, calls.value(model, std::vector<std::string>()));
  };
  return {ranks(source), ranks(destination)};
}

}  // namespace collimate::graph

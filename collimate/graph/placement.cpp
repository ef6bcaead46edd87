#include "collimate/graph/placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/contains.h"

namespace collimate::graph {
namespace {

std::vector<int> iota(int first, int count) {
  std::vector<int> made(static_cast<size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

bool needs_device(const Model& model) {
  return std::any_of(model.functions.begin(), model.functions.end(),
                     [](const FunctionSpec& spec) { return spec.kind != Kind::kHost; });
}

std::vector<std::string> device_models(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, model] : graph.models)
    if (needs_device(model)) names.push_back(name);
  return names;
}

// Returns the number of ranks of one replica of a device node on a group of `devices`.
int ranks_of(const Layout& layout, Kind kind, int devices) {
  const int inner = layout.tp * layout.pp * layout.cp;
  if (layout.dp > 0) return inner * layout.dp;
  return kind == Kind::kTrain ? std::max(inner, devices / inner * inner) : inner;
}

std::vector<int> union_of_services(const Graph& graph, const Placement& placement, const Node& node) {
  std::vector<int> workers = workers_of(graph, placement, node.model);
  for (const std::string& service : node.services)
    for (int worker : workers_of(graph, placement, service))
      if (!base::contains(workers, worker)) workers.push_back(worker);
  return workers;
}

}  // namespace

const ResourceGroup* Placement::group_of(std::string_view model) const {
  for (const auto& [name, group] : groups)
    if (base::contains(group.models, model)) return &group;
  return nullptr;
}

bool Placement::swaps(const std::string& model) const {
  const auto found = residency.find(model);
  return found != residency.end() && found->second == Residency::kSwap;
}

Layout Placement::layout(std::string_view model, std::string_view function) const {
  auto of_model = layouts.find(std::string(model));
  if (of_model == layouts.end()) return {};
  auto of_function = of_model->second.find(std::string(function));
  return of_function == of_model->second.end() ? Layout{} : of_function->second;
}

Placement flattening(const Graph& graph, int devices, std::string kind) {
  Placement made{devices, std::move(kind)};
  if (std::vector<std::string> models = device_models(graph); !models.empty())
    made.groups["all"] = {iota(0, devices), models};
  return made;
}

std::vector<int> workers_of(const Graph& graph, const Placement& placement, std::string_view model) {
  if (const ResourceGroup* group = placement.group_of(model)) return group->devices;
  int next = placement.devices;
  for (const auto& [name, spec] : graph.models) {
    if (placement.group_of(name) != nullptr) continue;
    auto found = placement.hosts.find(name);
    const int count = found == placement.hosts.end() ? 1 : found->second;
    if (name == model) return iota(next, count);
    next += count;
  }
  return {};
}

int worker_count(const Graph& graph, const Placement& placement) {
  int last = placement.devices;
  for (const auto& [name, spec] : graph.models)
    for (int worker : workers_of(graph, placement, name)) last = std::max(last, worker + 1);
  return last;
}

std::vector<Company> companies(const Graph& graph, const Placement& placement) {
  std::vector<Company> made(1);
  std::vector<size_t> of_device(static_cast<size_t>(placement.devices));  // index in `made`
  for (const auto& [model, spec] : graph.models) {
    std::map<size_t, size_t> joined;  // a company -> the company that it becomes with the model
    for (const int worker : workers_of(graph, placement, model)) {
      if (worker >= placement.devices) continue;
      size_t& company = base::at(of_device, worker);
      const auto [next, fresh] = joined.try_emplace(company, made.size());
      if (fresh) {
        made.push_back(made[company]);
        made.back().models.insert(model);
      }
      company = next->second;
    }
  }
  std::vector<Company> present;
  for (size_t device = 0; device < of_device.size(); ++device) {
    std::set<std::string>& models = made[of_device[device]].models;
    if (!models.empty()) present.push_back({static_cast<int>(device), std::exchange(models, {})});
  }
  return present;
}

std::vector<Replica> replicas(const Graph& graph, const Placement& placement, int node) {
  const Node& called = graph.node(node);
  if (!called.services.empty()) return {union_of_services(graph, placement, called)};
  return replicas(graph, placement, called.model, graph.spec(node));
}

std::vector<Replica> replicas(const Graph& graph, const Placement& placement, const std::string& model,
                              const FunctionSpec& function) {
  const std::vector<int> workers = workers_of(graph, placement, model);
  const int total = static_cast<int>(workers.size());
  const bool on_devices = placement.group_of(model) != nullptr;
  const int ranks = on_devices ? ranks_of(placement.layout(model, function.name), function.kind, total) : 1;
  const bool single = function.granularity == Granularity::kIteration || function.kind == Kind::kTrain;
  const int count = single ? 1 : total / ranks;
  std::vector<Replica> made;
  for (int r = 0; r < count; ++r) made.emplace_back(workers.begin() + r * ranks, workers.begin() + (r + 1) * ranks);
  return made;
}

}  // namespace collimate::graph

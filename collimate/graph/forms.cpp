#include "collimate/graph/forms.h"

#include <algorithm>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::graph {
namespace {

std::vector<int> range(int first, int count) {
  std::vector<int> made(static_cast<size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

// Returns the names of the models that need a device.
std::vector<std::string> placed_models(const Graph& graph) { return flattening(graph, 1).groups["all"].models; }

bool generates(const Model& model) {
  return std::any_of(model.functions.begin(), model.functions.end(),
                     [](const FunctionSpec& spec) { return spec.kind == Kind::kGenerate; });
}

}  // namespace

Placement separation(const Graph& graph, int devices, int training_devices, std::string kind) {
  if (training_devices < 1 || training_devices >= devices)
    throw base::InputError(base::expectation("placement separation",
                                             fmt::format("1 to {} training devices", devices - 1),
                                             fmt::format("{} of {}", training_devices, devices)));
  Placement made{devices, std::move(kind)};
  made.groups["training"].devices = range(0, training_devices);
  made.groups["generation"].devices = range(training_devices, devices - training_devices);
  for (const std::string& name : placed_models(graph))
    made.groups[graph.trains(name) ? "training" : "generation"].models.push_back(name);
  return made;
}

Placement interleaving(const Graph& graph, int devices, std::string kind) {
  Placement made{devices, std::move(kind)};
  std::vector<std::string> frozen;
  for (const std::string& name : placed_models(graph)) {
    if (graph.trains(name) || generates(graph.models.at(name))) {
      made.groups["all"].models.push_back(name);
    } else {
      frozen.push_back(name);
    }
  }
  const int count = static_cast<int>(frozen.size());
  if (count > devices)
    throw base::InputError(base::expectation("placement interleaving", fmt::format("at least {} devices", count),
                                             std::to_string(devices), "flattening"));
  if (made.groups.count("all")) made.groups["all"].devices = range(0, devices);
  for (int i = 0; i < count; ++i) {
    const int first = devices * i / count;
    made.groups[base::at(frozen, i)] = {range(first, devices * (i + 1) / count - first), {base::at(frozen, i)}};
  }
  return made;
}

}  // namespace collimate::graph

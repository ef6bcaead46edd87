#include "collimate/cli/plan_file.h"

#include "collimate/base/error.h"
#include "collimate/plan/simulate/timeline.h"

namespace collimate::cli {
namespace {

// Returns "devices 8-15 of group policy, devices 8-11 of group value", or "" if a cluster of `have` devices has all.
std::string missing_devices(const graph::Placement& placement, int have) {
  std::string text;
  for (const auto& [name, group] : placement.groups) {
    std::vector<int> missing;
    for (const int device : group.devices)
      if (device >= have) missing.push_back(device);
    if (missing.empty()) continue;
    text +=
        fmt::format("{}devices {} of group {}", text.empty() ? "" : ", ", collimate::plan::devices_text(missing), name);
  }
  return text;
}

void require_cluster(const collimate::plan::Request& request, const graph::Placement& placement,
                     const std::string& file) {
  const int have = request.cluster.devices();
  const std::string cluster = collimate::plan::cluster_text(request.cluster);
  if (const std::string missing = missing_devices(placement, have); !missing.empty())
    throw base::InputError(base::expectation(file, fmt::format("devices 0 to {} of {}", have - 1, cluster), missing,
                                             fmt::format("--cluster with {} devices or more", placement.devices)));
  if (placement.kind != request.device_kind())
    throw base::InputError(
        base::expectation(file, fmt::format("devices of kind {}, as those of {}", request.device_kind(), cluster),
                          "kind " + placement.kind,
                          fmt::format("--cluster of such devices, or devices: {{count: {}, kind: {}}}",
                                      placement.devices, request.device_kind())));
}

}  // namespace

SimulatedFile simulate_file(const collimate::plan::Request& request, const graph::Placement& placement,
                            const std::string& file) {
  require_cluster(request, placement, file);
  SimulatedFile made{collimate::plan::cost_placement(request, placement), {}};
  made.simulated = collimate::plan::simulate_plan(request, made.plan);
  collimate::plan::set_times(made.plan, made.simulated);
  return made;
}

}  // namespace collimate::cli

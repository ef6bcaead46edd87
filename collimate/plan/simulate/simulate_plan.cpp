#include "collimate/plan/simulate/simulate_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "collimate/base/at.h"

namespace collimate::plan {
namespace {

constexpr int64_t kMostRows = 4096;
constexpr int kFewDevices = 64;  // up to so many are simulated one by one

bool reads(const graph::Graph& graph, int node, int producer) {
  const std::vector<std::string>& inputs = graph.node(node).inputs;
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const std::string& input) { return graph.producer(input) == producer; });
}

// Returns whether a call works somewhere, on a device or the host, where `other` does not.
bool beside(const Call& call, const Call& other) {
  if (call.devices.empty()) return call.seconds > 0;
  return std::any_of(call.devices.begin(), call.devices.end(), [&](int device) {
    return std::find(other.devices.begin(), other.devices.end(), device) == other.devices.end();
  });
}

// Returns whether a call works on rows while the call that makes them goes on; then rows must be told apart.
bool overlaps(const Request& request, const Plan& plan) {
  std::set<int> early;
  for (const int n : graph::topological_order(request.graph)) {
    const graph::FunctionSpec& spec = request.graph.spec(n);
    if (spec.streams) early.insert(n);
    const auto call = std::find_if(plan.calls.begin(), plan.calls.end(), [&](const Call& c) { return c.node == n; });
    if (spec.streams || spec.granularity == graph::Granularity::kIteration || call == plan.calls.end()) continue;
    for (const Call& other : plan.calls)
      if (early.contains(other.node) && reads(request.graph, n, other.node) && beside(*call, other)) early.insert(n);
  }
  return std::any_of(early.begin(), early.end(), [&](int n) { return !request.graph.spec(n).streams; });
}

// Returns the rows of a simulated iteration: as few as give every replica of a function the same number, at most
// kMostRows, and eight times as many where calls overlap by rows.
int64_t simulated_rows(const Request& request, const Plan& plan, const graph::Placement& placement) {
  int64_t rows = 1;
  for (const Call& call : plan.calls) {
    const auto replicas = static_cast<int64_t>(graph::replicas(request.graph, placement, call.node).size());
    if (const int64_t both = std::lcm(rows, replicas); both <= kMostRows) rows = both;
  }
  if (rows * kFinishRows <= kMostRows && overlaps(request, plan)) rows *= kFinishRows;
  return rows;
}

// Returns the seconds of an iteration's calls on the busiest device.
double busiest_device(const Plan& plan) {
  std::map<int, double> busy;
  double most = 0;
  for (const Call& call : plan.calls)
    for (const int device : call.devices) most = std::max(most, busy[device] += call.seconds);
  return most;
}

// Returns when the last task of an iteration ended.
double end_of(const Simulation& simulation, int64_t iteration) {
  double last = 0;
  for (const TaskSpan& span : simulation.spans)
    if (span.task.iteration == iteration) last = std::max(last, span.end_seconds);
  return last;
}

int ranks_of(const Request& request, const Plan& plan, const Call& call) {
  return static_cast<int>(graph::replicas(request.graph, plan.placement, call.node).at(0).size());
}

// Returns how many neighbouring devices work in step: they belong to the same groups, and every replica lies within
// them or covers them. Returns 1 for few devices, or where a group is not a run of neighbours.
int devices_in_step(const Request& request, const Plan& plan) {
  if (plan.placement.devices <= kFewDevices) return 1;
  int unit = plan.placement.devices;
  for (const auto& [name, group] : plan.placement.groups) {
    const int count = static_cast<int>(group.devices.size());
    for (int i = 0; i < count; ++i)
      if (base::at(group.devices, i) != group.devices.front() + i) return 1;
    unit = std::gcd(unit, std::gcd(group.devices.front(), count));
  }
  for (int before = 0; before != unit;) {
    before = unit;
    for (const Call& call : plan.calls)
      if (const int ranks = call.devices.empty() ? 1 : ranks_of(request, plan, call); unit % ranks != 0)
        unit = std::gcd(unit, ranks);
  }
  return unit;
}

// Returns the placement with one device in place of each `unit` devices.
graph::Placement in_units(const Request& request, const Plan& plan, int unit) {
  if (unit == 1) return plan.placement;
  graph::Placement made = plan.placement;
  made.devices /= unit;
  for (auto& [name, group] : made.groups) {
    const int first = group.devices.front() / unit;
    group.devices.resize(group.devices.size() / static_cast<size_t>(unit));
    std::iota(group.devices.begin(), group.devices.end(), first);
  }
  made.layouts.clear();
  for (const Call& call : plan.calls)
    if (!call.devices.empty() && request.graph.spec(call.node).kind != graph::Kind::kTrain)
      made.layouts[call.model][call.function].dp = std::max(1, ranks_of(request, plan, call) / unit);
  return made;
}

}  // namespace

Predictions predictions_of(const Request& request, const Plan& plan, const graph::Placement& placement, int64_t rows) {
  struct Known {
    double seconds = 0, rows = 1;
    double call_seconds = 0;  // the part of the seconds that every call costs
    Finish finish = at_the_end(1);
  };
  std::map<int, Known> known;
  for (const Call& call : plan.calls) {
    const auto replicas = graph::replicas(request.graph, placement, call.node).size();
    Known& one = known[call.node] = {call.seconds, static_cast<double>(rows) / static_cast<double>(replicas)};
    if (rows % (static_cast<int64_t>(replicas) * kFinishRows) == 0) one.finish = call.time.finish;
    if (!call.devices.empty()) one.call_seconds = std::min(call.seconds, request.constants.phase_seconds);
  }
  Predictions made;
  made.seconds = [known, &graph = request.graph](const graph::Task& task, int64_t fed) {
    const auto found = known.find(task.node);
    if (found == known.end()) return 0.0;
    // A function that streams works on all its rows at once, any other one on the rows that are there.
    const auto& [seconds, all, each_call, finish] = found->second;
    if (graph.spec(task.node).streams) return seconds;
    return each_call + (seconds - each_call) * static_cast<double>(fed) / all;
  };
  made.finish = [known](const graph::Task& task, int64_t row) {
    const auto found = known.find(task.node);
    return found == known.end() ? 1.0 : found->second.finish[part_of_row(row)];
  };
  made.transition = [&graph = request.graph, loads = load_seconds(plan),
                     transfers = plan.transfer_seconds](const graph::Action& action) {
    if (action.transition == graph::TransitionKind::kWeights) {
      for (size_t l = 0; l < graph.links.size(); ++l)
        if (graph.links[l].source == action.source && graph.links[l].destination == action.model) return transfers[l];
      return 0.0;
    }
    const auto found = loads.find(action.model);
    return action.transition == graph::TransitionKind::kLoad && found != loads.end() ? found->second : 0.0;
  };
  return made;
}

PlanSimulation simulate_plan(const Request& request, const Plan& plan) {
  const int64_t overlap = plan.placement.staleness + 1;
  PlanSimulation made;
  made.devices_per_worker = devices_in_step(request, plan);
  made.placement = in_units(request, plan, made.devices_per_worker);
  made.rows = simulated_rows(request, plan, made.placement);
  const graph::ScheduleOptions options{
      .iterations = 3 * overlap + 1, .rows = made.rows, .staleness = plan.placement.staleness};
  made.simulation =
      simulate(request.graph, made.placement, options, predictions_of(request, plan, made.placement, made.rows));
  const double first = end_of(made.simulation, overlap), last = end_of(made.simulation, 3 * overlap);
  // The first iterations can end in quicker succession than the devices can keep up.
  made.period_seconds = std::max(busiest_device(plan), (last - first) / static_cast<double>(2 * overlap));
  made.typical_iteration = 2 * overlap;
  made.typical_end_seconds = end_of(made.simulation, made.typical_iteration);
  made.typical_begin_seconds = made.typical_end_seconds;
  for (const TaskSpan& span : made.simulation.spans)
    if (span.task.iteration == made.typical_iteration)
      made.typical_begin_seconds = std::min(made.typical_begin_seconds, span.begin_seconds);
  return made;
}

void set_times(Plan& plan, const PlanSimulation& simulated) {
  plan.seconds = simulated.period_seconds;
  for (Call& call : plan.calls) {
    call.begin_seconds = call.end_seconds = 0;
    for (const TaskSpan& span : simulated.simulation.spans) {
      if (span.task.node != call.node || span.task.iteration != simulated.typical_iteration) continue;
      const double begin = span.begin_seconds - simulated.typical_begin_seconds;
      call.begin_seconds = call.end_seconds == 0 ? begin : std::min(call.begin_seconds, begin);
      call.end_seconds = std::max(call.end_seconds, span.end_seconds - simulated.typical_begin_seconds);
    }
  }
}

}  // namespace collimate::plan

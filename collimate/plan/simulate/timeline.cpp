#include "collimate/plan/simulate/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/at.h"
#include "collimate/base/contains.h"

namespace collimate::plan {
namespace {

constexpr double kSame = 1e-9;  // relative difference of times that are one moment

std::string move_label(const graph::Action& action) {
  if (action.transition == graph::TransitionKind::kWeights) return action.source + " -> " + action.model;
  return (action.transition == graph::TransitionKind::kLoad ? "load " : "off-load ") + action.model;
}

// Returns the workers that a move keeps busy.
std::vector<int> workers_of(const Request& request, const graph::Placement& placement, const graph::Action& action) {
  if (action.transition != graph::TransitionKind::kWeights) return {action.worker};
  std::vector<int> workers = graph::workers_of(request.graph, placement, action.source);
  for (const int worker : graph::workers_of(request.graph, placement, action.model))
    if (!base::contains(workers, worker)) workers.push_back(worker);
  return workers;
}

int call_of(const Plan& plan, int node) {
  for (size_t i = 0; i < plan.calls.size(); ++i)
    if (plan.calls[i].node == node) return static_cast<int>(i);
  return -1;
}

// Returns the begin and end of each call of a task, between which it may wait, or of the whole task where it streams.
std::vector<std::pair<double, double>> work_of(const TaskSpan& span) {
  return span.calls.empty() ? std::vector<std::pair<double, double>>{{span.begin_seconds, span.end_seconds}}
                            : span.calls;
}

// DeviceWork finds the work of a device over the whole simulation.
class DeviceWork {
 public:
  DeviceWork(const Request& request, const Plan& plan, const PlanSimulation& simulated)
      : request_(request), plan_(plan), simulated_(simulated), simulation_(simulated.simulation) {}

  // Returns the simulator's worker that stands for a device.
  int worker_of(int device) const { return device / simulated_.devices_per_worker; }

  std::vector<Block> blocks(int device) const {
    std::vector<Block> found;
    for (const TaskSpan& span : simulation_.spans)
      if (base::contains(span.workers, device))
        for (const auto& [begin, end] : work_of(span))
          if (end > begin) found.push_back({call_of(plan_, span.task.node), label(span.task.node), begin, end});
    for (const MoveSpan& move : simulation_.moves)
      if (move.end_seconds > move.begin_seconds &&
          base::contains(workers_of(request_, simulated_.placement, move.action), device))
        found.push_back({-1, move_label(move.action), move.begin_seconds, move.end_seconds});
    std::stable_sort(found.begin(), found.end(),
                     [](const Block& a, const Block& b) { return a.begin_seconds < b.begin_seconds; });
    return found;
  }

  // Names what ended when the device went on with `next`.
  std::string cause(int device, const Block& next) const {
    const double moment = next.begin_seconds, close = kSame * std::max(1.0, moment);
    std::string ended;
    for (const MoveSpan& move : simulation_.moves)
      if (std::abs(move.end_seconds - moment) <= close && move.end_seconds > move.begin_seconds)
        ended = move_label(move.action);
    for (const TaskSpan& span : simulation_.spans) {
      if (std::abs(span.end_seconds - moment) > close || span.end_seconds <= span.begin_seconds) continue;
      if (base::contains(span.workers, device)) continue;
      ended = label(span.task.node);
      if (feeds(span.task.node, next.call)) break;
    }
    for (const TaskSpan& span : simulation_.spans)  // a producer may give out rows while it goes on
      if (ended.empty() && span.begin_seconds < moment && moment < span.end_seconds && feeds(span.task.node, next.call))
        ended = label(span.task.node);
    return ended.empty() ? "the next iteration" : ended;
  }

 private:
  std::string label(int index) const {
    const graph::Node& node = request_.graph.node(index);
    return node.model + "." + node.function;
  }

  bool feeds(int node, int call) const {
    if (call < 0) return false;
    const graph::Node& next = request_.graph.node(base::at(plan_.calls, call).node);
    return std::any_of(next.inputs.begin(), next.inputs.end(),
                       [&](const std::string& input) { return request_.graph.producer(input) == node; });
  }

  const Request& request_;
  const Plan& plan_;
  const PlanSimulation& simulated_;
  const Simulation& simulation_;
};

// Returns a device's work between the times `begin` and `end`, with the idle times in it.
Lane lane_of(const DeviceWork& work, const std::vector<int>& devices, double begin, double end) {
  Lane lane{devices, "", {}, {}, 0};
  double at = begin;
  const auto idle = [&](double until, const std::string& cause) {
    if (until - at <= kSame * end) return;
    lane.bubbles.push_back({at - begin, until - begin, cause});
    lane.idle_seconds += until - at;
  };
  for (const Block& block : work.blocks(work.worker_of(devices.front()))) {
    if (block.end_seconds <= begin) continue;
    idle(std::min(block.begin_seconds, end), work.cause(work.worker_of(devices.front()), block));
    at = std::max(at, std::min(block.end_seconds, end));
    if (block.begin_seconds >= end) break;
    lane.blocks.push_back({block.call, block.label, std::max(block.begin_seconds, begin) - begin,
                           std::min(block.end_seconds, end) - begin});
  }
  idle(end, "the end of the run");
  return lane;
}

}  // namespace

Timeline timeline_of(const Request& request, const Plan& plan, const PlanSimulation& simulated) {
  const DeviceWork work(request, plan, simulated);
  const double end = simulated.typical_end_seconds, begin = end - simulated.period_seconds;
  Timeline made{simulated.period_seconds, {}};
  for (const DeviceMemory& memory : plan.memory)
    if (!memory.resident.empty() || !memory.peak.empty()) {
      made.lanes.push_back(lane_of(work, memory.devices, begin, end));
      made.lanes.back().label = devices_text(request.cluster, memory.devices);
    }
  return made;
}

nlohmann::ordered_json chrome_trace(const Request& request, const Plan& plan, const PlanSimulation& simulated) {
  nlohmann::ordered_json events = nlohmann::ordered_json::array();
  const int unit = simulated.devices_per_worker, devices = plan.placement.devices, workers = devices / unit;
  // Adds work of one of the simulator's workers to the thread of every device that it stands for.
  const auto add = [&](const std::string& name, const char* category, int worker, double begin, double end) {
    const int first = worker < workers ? worker * unit : devices + worker - workers;
    for (int thread = first; thread < first + (worker < workers ? unit : 1); ++thread)
      events.push_back({{"name", name},
                        {"cat", category},
                        {"ph", "X"},
                        {"pid", 0},
                        {"tid", thread},
                        {"ts", begin * 1e6},
                        {"dur", (end - begin) * 1e6}});
  };
  for (int thread = 0; thread < graph::worker_count(request.graph, plan.placement); ++thread) {
    const std::string name = thread < devices ? "device " + devices_text(request.cluster, {thread}) : "host";
    events.push_back({{"name", "thread_name"}, {"ph", "M"}, {"pid", 0}, {"tid", thread}, {"args", {{"name", name}}}});
  }
  for (const TaskSpan& span : simulated.simulation.spans) {
    const graph::Node& node = request.graph.node(span.task.node);
    for (const int worker : span.workers)
      for (const auto& [begin, end] : work_of(span))
        add(fmt::format("{}.{} {}", node.model, node.function, span.task.iteration), "task", worker, begin, end);
  }
  for (const MoveSpan& move : simulated.simulation.moves)
    for (const int worker : workers_of(request, simulated.placement, move.action))
      add(move_label(move.action), "move", worker, move.begin_seconds, move.end_seconds);
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

std::string devices_text(const std::vector<int>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size();) {
    size_t last = i;
    while (last + 1 < devices.size() && devices[last + 1] == devices[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", devices[i]);
    if (last > i) text += fmt::format("-{}", devices[last]);
    i = last + 1;
  }
  return text;
}

std::string devices_text(const Cluster& cluster, const std::vector<int>& devices) {
  const std::string kind = kind_text(cluster, devices.front());
  return devices_text(devices) + (kind.empty() ? "" : " " + kind);
}

}  // namespace collimate::plan

#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/graph/schedule.h"

namespace collimate::graph {

// A Step is what a run decided at one point: an event and the actions that followed.
struct Step {
  Event event;
  std::vector<Action> actions;
  bool operator==(const Step&) const = default;
};

// A RecordedRun is a run as the first line of its recording describes it.
struct RecordedRun {
  Graph graph;
  Placement placement;
  ScheduleOptions options;
  std::vector<EvaluationGraph> evaluations = {};
  DeviceMemory memory = {};
  Schedule schedule() const { return Schedule(graph, placement, options, evaluations, memory); }
};

// A recording has a first line {"graph", "placement", "options"}, with "evaluations" if the run has some, "memory" if
// its models take turns within a budget, and "state" if it begins with the loaded schedule `resumed`. Then it has one
// JSON line {"event", "actions"} per step. Steps in which rows come and are fed on to the same tasks share a line:
// {"rows": task, "to": [tasks], "runs": [[first, count], …]}. A Begin that is not the first event means that the
// schedule was saved after the step before and loaded.
std::string recording_header(const RecordedRun& run, const Schedule* resumed = nullptr);
std::string recording_line(const Event& event, std::span<const Action> actions);

// A RecordingWriter writes steps in that form.
class RecordingWriter {
 public:
  // Adds a step. Returns the lines that are complete, often none.
  std::string step(const Event& event, std::span<const Action> actions);
  // Returns the line that is still open, or "".
  std::string flush();

 private:
  Task rows_of_;
  std::vector<Task> to_;
  std::vector<std::pair<int64_t, int64_t>> runs_;  // of the open line: first, count
};

}  // namespace collimate::graph

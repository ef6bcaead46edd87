#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collimate/graph/schedule.h"

namespace collimate::graph {

// A step is what a run decided: an event and the actions it led to.
struct Step {
  Event event;
  std::vector<Action> actions;
  bool operator==(const Step&) const = default;
};

// A run as the first line of its recording has it.
struct RecordedRun {
  Graph graph;
  Placement placement;
  ScheduleOptions options;
  std::vector<EvaluationGraph> evaluations = {};
  DeviceMemory memory = {};
  Schedule schedule() const { return Schedule(graph, placement, options, evaluations, memory); }
};

// A recording: a first line {"graph", "placement", "options"}, "evaluations" where the run has some, "memory" where its
// models take turns within a budget, and "state" where it begins with the loaded schedule `resumed`; then one JSON line
// {"event", "actions"} per step. Steps that say that rows came and feed each of them on to the same tasks share a line:
// {"rows": task, "to": [tasks], "runs": [[first, count], …]}. A Begin that is not the first event is that of a schedule
// that was saved after the step before and loaded.
std::string recording_header(const RecordedRun& run, const Schedule* resumed = nullptr);
std::string recording_line(const Event& event, std::span<const Action> actions);

// Writes steps in that form.
class RecordingWriter {
 public:
  // Adds a step; returns the lines that are complete, often none.
  std::string step(const Event& event, std::span<const Action> actions);
  // The line that is still open.
  std::string flush();

 private:
  Task rows_of_;
  std::vector<Task> to_;
  std::vector<std::pair<int64_t, int64_t>> runs_;  // of the open line: first, count
};

}  // namespace collimate::graph

#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/graph/schedule.h"

namespace collimate::graph {

// What a run decided: an event and the actions it led to.
struct Step {
  Event event;
  std::vector<Action> actions;
  bool operator==(const Step&) const = default;
};

// Drives a fresh Schedule with the events.
std::vector<Step> replay(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                         std::span<const Event> events);

// The first difference between recorded steps and their replay, as text; empty when there is none.
std::string compare(const Graph& graph, std::span<const Step> recorded, std::span<const Step> replayed);

// A recording: a first line {"graph", "placement", "options"}, then one JSON line {"event", "actions"} per step.
std::string recording_header(const Graph& graph, const Placement& placement, const ScheduleOptions& options);
std::string recording_line(const Event& event, std::span<const Action> actions);
// Parses a recording, replays its events, compares. Empty when equal; InputError when it cannot be read.
std::string check_recording(std::string_view recording);

// The readable text trace: "> event" then "  action" lines.
std::string trace_text(const Graph& graph, std::span<const Step> steps);

}  // namespace collimate::graph

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/graph/recording.h"

namespace collimate::plan {

// Predictions tell the simulator how long everything takes and what happens from outside. All functions must be
// deterministic.
struct Predictions {
  // Returns the seconds of one call on `rows` rows. A streaming task works on all its feeds at once. Any other task
  // makes one call after the other, each on all rows that wait for it.
  std::function<double(const graph::Task& task, int64_t rows)> seconds = [](const graph::Task&, int64_t rows) {
    return static_cast<double>(rows);
  };
  // Returns the share of the seconds after which a streaming task's row is done; neighbouring rows that are done at the
  // same time come in one event. Where it is empty, each sample group comes by itself after the seconds of its own
  // rows.
  std::function<double(const graph::Task& task, int64_t row)> finish;
  double transition_seconds = 1;
  // Returns the seconds of one load, off-load or weight transfer. Where it is empty, each takes transition_seconds.
  std::function<double(const graph::Action& action)> transition;
  // Returns whether a filter drops the sample group that begins at `first`.
  std::function<bool(const graph::Task& task, int64_t first)> drops = [](const graph::Task&, int64_t) { return false; };
  // Events from outside with their seconds: a worker is lost, a stop is asked for.
  std::vector<std::pair<double, graph::Event>> outside;
};

// A TaskSpan is one task as it ran, in virtual seconds.
struct TaskSpan {
  graph::Task task;
  std::vector<int> workers;
  double begin_seconds = 0;
  double end_seconds = 0;                        // 0 when it did not finish
  std::vector<std::pair<double, double>> calls;  // begin and end of each, unless the task streams
};

// A MoveSpan is one load, off-load or weight transfer.
struct MoveSpan {
  graph::Action action;
  double begin_seconds = 0;
  double end_seconds = 0;
};

struct Simulation {
  std::vector<graph::Step> steps;  // events and actions, as a run records them
  std::vector<double> times;       // of each step
  std::vector<TaskSpan> spans;     // in order of their starts
  std::vector<MoveSpan> moves;
  double seconds = 0;
  bool stopped = false;  // by the schedule; false: no event was left before it stopped
  std::string waiting;   // when not stopped: who waited for what
};

// Drives the runtime's own Schedule in virtual time: every action is answered by the event that its prediction gives.
Simulation simulate(const graph::NamedGraphs& graphs, const graph::Placement& placement,
                    const graph::ScheduleOptions& options, const Predictions& predictions = {});
// Continues from a schedule that was loaded, as a run does that continues in a new process.
Simulation simulate_from(graph::Schedule schedule, const graph::NamedGraphs& graphs,
                         const graph::ScheduleOptions& options, const Predictions& predictions = {});

}  // namespace collimate::plan

#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/graph/recording.h"

namespace collimate::plan {

// The simulator believes this about time, and is told what will happen. All functions must be deterministic.
struct Predictions {
  // Seconds of one call on `rows` rows. A streaming task works on all its feeds at once; another one does what it has
  // been fed in one call after the other, each on all that is there.
  std::function<double(const graph::Task& task, int64_t rows)> seconds = [](const graph::Task&, int64_t rows) {
    return static_cast<double>(rows);
  };
  // Says after which share of the seconds a streaming task's row is done; rows that are done at once come in one event.
  // Empty: each sample group by itself, all at the end.
  std::function<double(const graph::Task& task, int64_t row)> finish;
  double transition_seconds = 1;
  // Gives the seconds of one transition, where they differ: a load, an off-load, a weight transfer.
  std::function<double(const graph::Action& action)> transition;
  // Whether a filter drops the sample group that begins at `first`.
  std::function<bool(const graph::Task& task, int64_t first)> drops = [](const graph::Task&, int64_t) { return false; };
  // Events from outside by their time: a worker lost, a stop asked.
  std::vector<std::pair<double, graph::Event>> outside;
};

// One task as it ran, in virtual seconds.
struct TaskSpan {
  graph::Task task;
  std::vector<int> workers;
  double begin_seconds = 0;
  double end_seconds = 0;                        // 0 when it did not finish
  std::vector<std::pair<double, double>> calls;  // begins and ends, of a task that does not stream
};

// One load, off-load or weight transfer.
struct MoveSpan {
  graph::Action action;
  double begin_seconds = 0;
  double end_seconds = 0;
};

struct Simulation {
  std::vector<graph::Step> steps;  // a recording, as of a run
  std::vector<double> times;       // of each step
  std::vector<TaskSpan> spans;     // in order of their starts
  std::vector<MoveSpan> moves;
  double seconds = 0;
  bool stopped = false;  // false: nothing was left to happen and the schedule had not stopped
  std::string waiting;   // who waited for what, when not stopped
};

// Drives the runtime's own Schedule in virtual time: every action is answered by the event that its prediction gives.
Simulation simulate(const graph::NamedGraphs& graphs, const graph::Placement& placement,
                    const graph::ScheduleOptions& options, const Predictions& predictions = {});
// Goes on from a schedule that was loaded: a run that goes on in a new process.
Simulation simulate_from(graph::Schedule schedule, const graph::NamedGraphs& graphs,
                         const graph::ScheduleOptions& options, const Predictions& predictions = {});

}  // namespace collimate::plan

#pragma once

#include <cstdint>
#include <vector>

#include "collimate/plan/cost/finish.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// The functions of a placement take these times, by function.
struct Times {
  std::vector<double> seconds;
  std::vector<Finish> finish;  // of what streams: when its rows are out
};

// A Clock says when the functions of a placement run, by the rules of graph::Schedule: on a device tasks begin in the
// order (iteration, function); a weight transfer waits for what runs on its devices and goes before what has not begun;
// iteration i begins when all before i − staleness are complete. A function is one task on each cell of its devices,
// one that trains or whose replicas lie across cells (`joint`, as bits) a single task: replicas of one cell are taken
// to work in step. What works by rows begins with the first ones that a function on other cells gives out, and does
// what there is in one call after the other.
class Clock {
 public:
  Clock(const Functions& functions, const Slots& slots, int64_t staleness, uint32_t joint = 0);

  // No plan of these times has a shorter period, whatever its transfers take.
  double bound(const Times& times) const;
  // Seconds between ends of iterations. `transfers` are those of Functions::transfers.
  double period(const Times& times, const std::vector<double>& transfers) const;
  // No more than it, and no less for more of any time: of one iteration after the other.
  double least_period(const Times& times, const std::vector<double>& transfers) const;

  uint32_t cells(size_t function) const { return cells_[function]; }
  size_t cell_count() const { return cell_count_; }

 private:
  friend class ClockRun;
  struct Task {
    size_t function = 0;
    uint32_t cells = 0;
    std::vector<size_t> producers;  // tasks
    std::vector<size_t> place;      // by cell: its place in the cell's order
    bool early = false;             // begins with the first rows that others give out
    bool gives = false;             // gives rows out before its end
  };
  // Returns when the parts of a task's rows are there; `ends` and `out` by task of its iteration.
  static Finish ready(const std::vector<Task>& tasks, const Task& task, const double* ends, const Finish* out);
  struct Parts {
    double call, rows;  // seconds of a call without rows, and of all rows
  };
  Parts parts_of(const Task& task, const Times& times) const;
  // Returns when an early task that begins then is through with them, in calls of what there is; or no sooner.
  Finish in_calls(const Task& task, double begin, const Finish& ready, const Times& times) const;
  Finish at_best(const Task& task, double begin, const Finish& ready, const Times& times) const;
  static Finish given(const Task& task, double begin, const Times& times);
  void add_tasks(size_t function, bool single, std::vector<std::vector<size_t>>& tasks_of);
  void add_task(size_t function, uint32_t cells, const std::vector<std::vector<size_t>>& tasks_of);
  bool begins_early(size_t function, uint32_t cells, const std::vector<std::vector<size_t>>& tasks_of) const;
  double chain(const Times& times) const;
  double busy(const Times& times) const;

  const Functions& functions_;
  int64_t staleness_;
  size_t cell_count_;
  std::vector<uint32_t> cells_;              // by function
  std::vector<Task> tasks_;                  // in the order of functions
  std::vector<size_t> on_cell_;              // tasks of each cell
  std::vector<uint32_t> sources_, targets_;  // cells, by transfer
};

}  // namespace collimate::plan

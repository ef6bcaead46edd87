#pragma once

#include <cstdint>
#include <vector>

#include "collimate/plan/cost/finish.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Times has the time that each function of a placement takes.
struct Times {
  std::vector<double> seconds;
  std::vector<Finish> finish;  // of functions that stream: when their rows are out
};

// A Clock says when the functions of a placement run, by the rules of graph::Schedule. On a device, tasks begin in the
// order (iteration, function). A weight transfer waits for what runs on its devices, and goes before what has not
// begun. Iteration i begins when all those before i − staleness are complete. A function is one task on each cell
// of its devices, as replicas of one cell are taken to work in step; a function that trains, or whose replicas lie
// across cells (its bit in `joint`), is a single task. A function that works by rows begins with the first ones that a
// function on other cells gives out, and does the rows that are there in one call after the other.
class Clock {
 public:
  Clock(const Functions& functions, const Slots& slots, int64_t staleness, uint32_t joint = 0);

  // Returns a lower bound on the period of every plan with these times, whatever its transfers take.
  double bound(const Times& times) const;
  // Returns the seconds between ends of iterations. `transfers` has the seconds of each of Functions::transfers.
  double period(const Times& times, const std::vector<double>& transfers) const;
  // Returns a lower bound on period() that does not fall when any time rises. CHECKs that the staleness is 0, as it is
  // for iterations that follow each other.
  double least_period(const Times& times, const std::vector<double>& transfers) const;

  uint32_t cells(size_t function) const { return cells_[function]; }
  size_t cell_count() const { return cell_count_; }

 private:
  friend class ClockRun;
  struct Task {
    size_t function = 0;
    uint32_t cells = 0;
    std::vector<size_t> producers;  // indices of tasks
    std::vector<size_t> place;      // by cell: its place in the cell's order
    bool early = false;             // begins with the first rows that others give out
    bool gives = false;             // gives rows out before its end
  };
  // Returns when the parts of a task's rows are there; `ends` and `out` are by task of the same iteration.
  static Finish ready(const std::vector<Task>& tasks, const Task& task, const double* ends, const Finish* out);
  struct Parts {
    double call, rows;  // seconds of a call without rows, and of all rows
  };
  Parts parts_of(const Task& task, const Times& times) const;
  // in_calls() returns when an early task that begins at `begin` is through with each part of its rows, in calls on the
  // rows that are there. at_best() returns a lower bound on that.
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
  std::vector<size_t> on_cell_;              // number of tasks, by cell
  std::vector<uint32_t> sources_, targets_;  // cells, by transfer
};

}  // namespace collimate::plan

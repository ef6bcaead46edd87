#pragma once

#include <cstdint>
#include <vector>

#include "collimate/plan/cost/functions.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// When the functions of a placement run, by the rules of graph::Schedule: on a device tasks begin in the order
// (iteration, function); a weight transfer waits for what runs on its devices and goes before what has not begun;
// iteration i begins when all before i − staleness are complete. A function is one task on each cell of its devices,
// one that trains or whose replicas lie across cells (`joint`, as bits) a single task: replicas of one cell are taken
// to work in step.
class Clock {
 public:
  Clock(const Functions& functions, const Slots& slots, int64_t staleness, uint32_t joint = 0);

  // No plan of these seconds has a shorter period, whatever its transfers take.
  double bound(const std::vector<double>& seconds) const;
  // Seconds between ends of iterations. `transfers` are those of Functions::transfers.
  double period(const std::vector<double>& seconds, const std::vector<double>& transfers) const;

  uint32_t cells(size_t function) const { return cells_[function]; }
  size_t cell_count() const { return cell_count_; }

 private:
  friend class ClockRun;
  struct Task {
    size_t function = 0;
    uint32_t cells = 0;
    std::vector<size_t> producers;  // tasks
    std::vector<size_t> place;      // by cell: its place in the cell's order
  };
  void add_tasks(size_t function, bool single, std::vector<std::vector<size_t>>& tasks_of);
  void add_task(size_t function, uint32_t cells, const std::vector<std::vector<size_t>>& tasks_of);
  double chain(const std::vector<double>& seconds) const;
  double busy(const std::vector<double>& seconds) const;

  const Functions& functions_;
  int64_t staleness_;
  size_t cell_count_;
  std::vector<uint32_t> cells_;              // by function
  std::vector<Task> tasks_;                  // in the order of functions
  std::vector<size_t> on_cell_;              // tasks of each cell
  std::vector<uint32_t> sources_, targets_;  // cells, by transfer
};

}  // namespace collimate::plan

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fields.h"
#include "collimate/graph/event.h"
#include "collimate/graph/placement.h"

namespace collimate::graph {

struct WorkerState {
  bool lost = false;
  std::string cause;
  std::optional<Task> task;
  bool transferring = false;

  COLLIMATE_FIELDS(lost, cause, transferring, task)
};

// Knows what each worker does, and which are lost. A worker has one task at most, and all workers of a replica have the
// same. For each loss a timer runs until the worker is back or the time is over. Internal to schedule*.cpp.
class Workers {
 public:
  explicit Workers(size_t count) : workers_(count) {}

  WorkerState& operator[](int index) { return base::at(workers_, index); }
  const WorkerState& operator[](int index) const { return base::at(workers_, index); }
  const std::vector<WorkerState>& all() const { return workers_; }
  // Whether none of the workers is lost.
  bool alive(const Replica& workers) const;
  // Gives those of the workers that are not lost.
  std::vector<int> alive_of(const std::vector<int>& workers) const;
  // None has a task or takes part in a transfer.
  bool idle() const;
  // One that is lost may still come back.
  bool awaited() const { return !timers_.empty(); }

  void start(const Replica& workers, const Task& task);
  void end(const Replica& workers);

  // False where it is lost already.
  bool lose(int index, const std::string& cause);
  // The timer that begins to run for a lost worker.
  int arm(int index);
  void back(int index);
  // The worker whose time is over; nullopt where it is back.
  std::optional<int> expired(int timer);
  // As at setup: all work and do nothing.
  void reset();

  COLLIMATE_MEMBERS(workers, timers, next_timer)

 private:
  std::vector<WorkerState> workers_;
  std::map<int, int> timers_;  // timer → lost worker that may come back
  int next_timer_ = 0;
};

}  // namespace collimate::graph

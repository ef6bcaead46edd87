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

// Workers knows what each worker does and which are lost. A worker has at most one task, and all workers of a replica
// have the same. For each loss a timer runs until the worker is back or the time is over. Internal to schedule*.cpp.
class Workers {
 public:
  explicit Workers(size_t count) : workers_(count) {}

  WorkerState& operator[](int index) { return base::at(workers_, index); }
  const WorkerState& operator[](int index) const { return base::at(workers_, index); }
  const std::vector<WorkerState>& all() const { return workers_; }
  // Says whether none of the workers is lost.
  bool alive(const Replica& workers) const;
  // Returns those of the workers that are not lost.
  std::vector<int> alive_of(const std::vector<int>& workers) const;
  // Says whether no worker has a task or takes part in a transfer.
  bool idle() const;
  // Says whether a lost worker may still come back.
  bool awaited() const { return !timers_.empty(); }

  void start(const Replica& workers, const Task& task);
  void end(const Replica& workers);

  // Notes a loss. Returns false when the worker was lost already.
  bool lose(int index, const std::string& cause);
  // Starts a timer for a lost worker and returns the timer's number.
  int arm(int index);
  void back(int index);
  // Returns the worker whose time is over, or nullopt when it is back.
  std::optional<int> expired(int timer);
  // Sets all workers to their state at setup: they work and do nothing.
  void reset();

  COLLIMATE_MEMBERS(workers, timers, next_timer)

 private:
  std::vector<WorkerState> workers_;
  std::map<int, int> timers_;  // timer → lost worker that may come back
  int next_timer_ = 0;
};

}  // namespace collimate::graph

#include "collimate/graph/schedule_workers.h"

#include <algorithm>

namespace collimate::graph {

bool Workers::alive(const Replica& workers) const {
  return std::none_of(workers.begin(), workers.end(), [&](int index) { return (*this)[index].lost; });
}

std::vector<int> Workers::alive_of(const std::vector<int>& workers) const {
  std::vector<int> alive;
  for (int index : workers)
    if (!(*this)[index].lost) alive.push_back(index);
  return alive;
}

bool Workers::idle() const {
  return std::none_of(workers_.begin(), workers_.end(), [](const WorkerState& w) { return w.task || w.transferring; });
}

void Workers::start(const Replica& workers, const Task& task) {
  for (int index : workers) (*this)[index].task = task;
}

void Workers::end(const Replica& workers) {
  for (int index : workers) (*this)[index].task.reset();
}

bool Workers::lose(int index, const std::string& cause) {
  WorkerState& state = (*this)[index];
  if (state.lost) return false;
  state.lost = true;
  state.cause = cause;
  return true;
}

int Workers::arm(int index) {
  timers_[next_timer_] = index;
  return next_timer_++;
}

void Workers::back(int index) {
  (*this)[index].lost = false;
  std::erase_if(timers_, [&](const auto& timer) { return timer.second == index; });
}

std::optional<int> Workers::expired(int timer) {
  auto found = timers_.extract(timer);
  return found ? std::optional(found.mapped()) : std::nullopt;
}

void Workers::reset() {
  std::fill(workers_.begin(), workers_.end(), WorkerState());
  timers_.clear();
}

}  // namespace collimate::graph

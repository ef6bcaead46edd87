#include "collimate/plan/search/clock.h"

#include <algorithm>
#include <array>

#include "collimate/base/error.h"
#include "collimate/plan/search/clock_run.h"

namespace collimate::plan {

Clock::Clock(const Functions& functions, const Slots& slots, int64_t staleness, uint32_t joint)
    : functions_(functions),
      staleness_(staleness),
      cell_count_(slots.size() - (nested(slots) ? 1 : 0)),
      on_cell_(cell_count_) {
  COLLIMATE_CHECK(cell_count_ <= kMostCells, "{} slices", cell_count_);
  std::vector<std::vector<size_t>> tasks_of(functions.size());
  for (size_t f = 0; f < functions.size(); ++f) {
    const int model = functions.at(f).model;
    cells_.push_back(model < 0 ? 0 : cells_of(slots, slot_of(slots, model)));
    add_tasks(f, functions.at(f).work == Work::kTrain || model < 0 || (joint >> f & 1U) != 0, tasks_of);
  }
  for (const Transfer& transfer : functions.transfers) {
    sources_.push_back(cells_of(slots, slot_of(slots, transfer.source)));
    targets_.push_back(cells_of(slots, slot_of(slots, transfer.destination)));
  }
}

void Clock::add_tasks(size_t f, bool single, std::vector<std::vector<size_t>>& tasks_of) {
  const size_t first = tasks_.size();
  if (single) {
    add_task(f, cells_[f], tasks_of);
  } else {
    for (size_t c = 0; c < cell_count_; ++c)
      if ((cells_[f] >> c & 1U) != 0) add_task(f, 1U << c, tasks_of);
  }
  for (size_t task = first; task < tasks_.size(); ++task) tasks_of[f].push_back(task);
}

void Clock::add_task(size_t f, uint32_t cells, const std::vector<std::vector<size_t>>& tasks_of) {
  Task task{f, cells, {}, std::vector<size_t>(cell_count_)};
  for (const int producer : functions_.at(f).producers)
    for (const size_t other : tasks_of[static_cast<size_t>(producer)]) task.producers.push_back(other);
  for (size_t c = 0; c < cell_count_; ++c)
    if ((cells >> c & 1U) != 0) task.place[c] = on_cell_[c]++;
  tasks_.push_back(std::move(task));
}

double Clock::busy(const std::vector<double>& seconds) const {
  std::array<double, kMostCells> sum = {};
  double most = 0;
  for (const Task& task : tasks_)
    for (size_t c = 0; task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) most = std::max(most, sum[c] += seconds[task.function]);
  return most;
}

// Tasks begin as soon as their inputs are there and, where iterations do not overlap, their devices free.
double Clock::chain(const std::vector<double>& seconds) const {
  std::array<double, kMostCells> free = {};
  std::vector<double> ends(tasks_.size());
  double last = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    double begin = 0;
    for (const size_t producer : task.producers) begin = std::max(begin, ends[producer]);
    for (size_t c = 0; staleness_ == 0 && task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) begin = std::max(begin, free[c]);
    ends[t] = begin + seconds[task.function];
    for (size_t c = 0; task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) free[c] = ends[t];
    last = std::max(last, ends[t]);
  }
  return last;
}

double Clock::bound(const std::vector<double>& seconds) const {
  if (staleness_ == 0) return chain(seconds);
  return std::max(busy(seconds), chain(seconds) / static_cast<double>(staleness_ + 1));
}

double Clock::period(const std::vector<double>& seconds, const std::vector<double>& transfers) const {
  const auto overlap = static_cast<size_t>(staleness_) + 1;
  ClockRun run(*this, seconds, transfers, staleness_ == 0 ? 1 : 3 * overlap + 1);
  run.run();
  if (staleness_ == 0) return run.last();
  return (run.complete(3 * overlap) - run.complete(overlap)) / static_cast<double>(2 * overlap);
}

}  // namespace collimate::plan

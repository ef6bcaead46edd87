#include "collimate/plan/search/clock_run.h"

#include <algorithm>
#include <limits>

namespace collimate::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

ClockRun::ClockRun(const Clock& clock, const Times& times, const std::vector<double>& transfers, size_t iterations,
                   bool at_best)
    : clock_(clock),
      times_(times),
      transfer_seconds_(transfers),
      at_best_(at_best),
      iterations_(iterations),
      count_(clock.tasks_.size()),
      ends_(iterations * count_, -1),
      out_(iterations * count_),
      left_(iterations, count_),
      complete_(iterations, 0),
      moves_(transfers.size()) {}

void ClockRun::run() {
  while (first_ < iterations_) step();
  for (size_t t = 0; t < moves_.size(); ++t)
    if (moves_[t].pending) move(t);
}

double ClockRun::free_at(uint32_t cells) const {
  double latest = 0;
  for (size_t c = 0; cells >> c != 0; ++c)
    if ((cells >> c & 1U) != 0) latest = std::max(latest, free_[c]);
  return latest;
}

double ClockRun::move_at(size_t t) const {
  return std::max(moves_[t].asked, free_at(clock_.sources_[t] | clock_.targets_[t]));
}

void ClockRun::occupy(uint32_t cells, double until) {
  for (size_t c = 0; cells >> c != 0; ++c)
    if ((cells >> c & 1U) != 0) free_[c] = until;
  last_ = std::max(last_, until);
}

bool ClockRun::in_turn(size_t k, const Clock::Task& task) const {
  for (size_t c = 0; task.cells >> c != 0; ++c)
    if ((task.cells >> c & 1U) != 0 && heads_[c] != k * clock_.on_cell_[c] + task.place[c]) return false;
  return true;
}

// Returns when a task can begin; infinity where something before it has not begun.
double ClockRun::begin_of(size_t k, size_t index) const {
  const Clock::Task& task = clock_.tasks_[index];
  if (!in_turn(k, task)) return kInfinity;
  double begin = free_at(task.cells);
  if (const auto ahead = static_cast<size_t>(clock_.staleness_) + 1; k >= ahead) {
    if (first_ < k - ahead + 1) return kInfinity;
    begin = std::max(begin, complete_[k - ahead]);
  }
  for (const size_t producer : task.producers) {
    const size_t at = k * count_ + producer;
    if (ends_[at] < 0) return kInfinity;
    begin = std::max(begin, task.early && clock_.tasks_[producer].gives ? out_[at][0] : ends_[at]);
  }
  return after_moves(task, begin);
}

// Returns whether a task may begin before the transfer. Rows that the destination gives out reach other tasks before
// its own task has ended, and these need not wait for new weights.
bool ClockRun::before_move(size_t t, const Clock::Task& task, double begin) const {
  if ((task.cells & clock_.targets_[t]) != 0 || moves_[t].reader_end < begin) return false;
  const Transfer& transfer = clock_.functions_.transfers[t];
  if (transfer.trainer == static_cast<int>(task.function)) return false;
  if (moves_[t].reader_end > begin) return true;
  if (clock_.functions_.at(task.function).work == Work::kTrain) return false;
  return std::any_of(task.producers.begin(), task.producers.end(), [&](size_t producer) {
    return clock_.functions_.at(clock_.tasks_[producer].function).model == transfer.destination;
  });
}

double ClockRun::after_moves(const Clock::Task& task, double begin) const {
  for (size_t t = 0; t < moves_.size(); ++t) {
    if (!moves_[t].pending || begin < moves_[t].asked || before_move(t, task, begin)) continue;
    if ((task.cells & (clock_.sources_[t] | clock_.targets_[t])) != 0 ||
        clock_.functions_.transfers[t].trainer == static_cast<int>(task.function))
      begin = std::max(begin, move_at(t) + transfer_seconds_[t]);
  }
  return begin;
}

void ClockRun::step() {
  double soonest = kInfinity;
  size_t iteration = 0, chosen = 0;
  const size_t end = std::min(iterations_, first_ + static_cast<size_t>(clock_.staleness_) + 1);
  for (size_t k = first_; k < end; ++k)
    for (size_t task = 0; task < count_; ++task) {
      if (ends_[k * count_ + task] >= 0) continue;
      if (const double begin = begin_of(k, task); begin < soonest) {
        soonest = begin;
        iteration = k;
        chosen = task;
      }
    }
  for (size_t t = 0; t < moves_.size(); ++t) {
    if (!moves_[t].pending) continue;
    const double at = move_at(t);
    if (at < soonest || (at == soonest && !before_move(t, clock_.tasks_[chosen], soonest))) return move(t);
  }
  start(iteration, chosen, soonest);
}

void ClockRun::move(size_t t) {
  moves_[t].pending = false;
  occupy(clock_.sources_[t] | clock_.targets_[t], move_at(t) + transfer_seconds_[t]);
}

void ClockRun::note_training(const Clock::Task& task, double end) {
  for (size_t t = 0; t < moves_.size(); ++t) {
    const Transfer& transfer = clock_.functions_.transfers[t];
    if (transfer.trainer == static_cast<int>(task.function)) {
      moves_[t].pending = true;
      moves_[t].asked = end;
    }
    if (clock_.functions_.at(task.function).model == transfer.destination) moves_[t].reader_end = end;
  }
}

double ClockRun::end_of(size_t k, size_t index, double begin) {
  const Clock::Task& task = clock_.tasks_[index];
  const double end = begin + times_.seconds[task.function];
  if (!task.gives) return end;
  Finish& out = out_[k * count_ + index];
  if (!task.early) return (out = Clock::given(task, begin, times_)).back();
  const Finish ready = Clock::ready(clock_.tasks_, task, &ends_[k * count_], &out_[k * count_]);
  out = at_best_ ? clock_.at_best(task, begin, ready, times_) : clock_.in_calls(task, begin, ready, times_);
  return out.back();
}

void ClockRun::start(size_t k, size_t index, double begin) {
  const Clock::Task& task = clock_.tasks_[index];
  const double end = ends_[k * count_ + index] = end_of(k, index, begin);
  occupy(task.cells, end);
  for (size_t c = 0; task.cells >> c != 0; ++c) heads_[c] += task.cells >> c & 1U;
  complete_[k] = std::max(complete_[k], end);
  note_training(task, end);
  --left_[k];
  for (; first_ < iterations_ && left_[first_] == 0; ++first_)
    if (first_ > 0) complete_[first_] = std::max(complete_[first_], complete_[first_ - 1]);
}

}  // namespace collimate::plan

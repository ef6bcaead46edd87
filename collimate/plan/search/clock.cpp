#include "collimate/plan/search/clock.h"

#include <algorithm>
#include <array>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/plan/search/clock_run.h"

namespace collimate::plan {
namespace {

constexpr double kMoment = 1 + 1e-9;  // times this close are one

}  // namespace

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
    for (const size_t other : base::at(tasks_of, producer)) task.producers.push_back(other);
  for (size_t c = 0; c < cell_count_; ++c)
    if ((cells >> c & 1U) != 0) task.place[c] = on_cell_[c]++;
  task.early = begins_early(f, cells, tasks_of);
  task.gives = task.early || functions_.at(f).streams;
  tasks_.push_back(std::move(task));
}

// A function that shares cells with all producers that give it rows early waits for their end anyway.
bool Clock::begins_early(size_t f, uint32_t cells, const std::vector<std::vector<size_t>>& tasks_of) const {
  const std::vector<int>& producers = functions_.at(f).producers;
  return functions_.at(f).by_rows && std::any_of(producers.begin(), producers.end(), [&](int producer) {
           const std::vector<size_t>& tasks = base::at(tasks_of, producer);
           return (base::at(cells_, producer) & cells) == 0 &&
                  std::any_of(tasks.begin(), tasks.end(), [&](size_t task) { return tasks_[task].gives; });
         });
}

Finish Clock::ready(const std::vector<Task>& tasks, const Task& task, const double* ends, const Finish* out) {
  Finish latest = {};
  for (const size_t producer : task.producers) {
    const Finish parts = tasks[producer].gives ? out[producer] : at_the_end(ends[producer]);
    for (size_t part = 0; part < kFinishParts; ++part) latest[part] = std::max(latest[part], parts[part]);
  }
  return latest;
}

Finish Clock::given(const Task& task, double begin, const Times& times) {
  Finish out = times.finish[task.function];
  for (double& part : out) part = begin + std::min(part, times.seconds[task.function]);
  out.back() = begin + times.seconds[task.function];
  return out;
}

Clock::Parts Clock::parts_of(const Task& task, const Times& times) const {
  const double seconds = times.seconds[task.function];
  const double call = std::min(functions_.at(task.function).call_seconds, seconds);
  return {call, seconds - call};
}

Finish Clock::in_calls(const Task& task, double begin, const Finish& ready, const Times& times) const {
  const Parts of = parts_of(task, times);
  Finish out = {};
  double now = begin;
  for (size_t part = 0; part < kFinishParts;) {
    const size_t first = part;
    now = std::max(now, ready[part]);
    double rows = 0;
    for (; part < kFinishParts && ready[part] <= now * kMoment; ++part) rows += kPartRows[part];
    now += of.call + rows * of.rows;
    for (size_t done = first; done < part; ++done) out[done] = now;
  }
  return out;
}

Finish Clock::at_best(const Task& task, double begin, const Finish& ready, const Times& times) const {
  const Parts of = parts_of(task, times);
  Finish out = {};
  double now = begin;
  for (size_t part = 0; part < kFinishParts; ++part) {
    now = std::max(now, ready[part]) + kPartRows[part] * of.rows;
    out[part] = now + of.call;
  }
  return out;
}

double Clock::busy(const Times& times) const {
  std::array<double, kMostCells> sum = {};
  double most = 0;
  for (const Task& task : tasks_)
    for (size_t c = 0; task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) most = std::max(most, sum[c] += times.seconds[task.function]);
  return most;
}

// Returns the seconds of an iteration whose tasks begin as soon as their inputs are there and, where iterations do not
// overlap, their devices are free.
double Clock::chain(const Times& times) const {
  std::array<double, kMostCells> free = {};
  std::vector<double> ends(tasks_.size());
  std::vector<Finish> out(tasks_.size());
  double last = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const Task& task = tasks_[t];
    const Finish parts = task.early ? ready(tasks_, task, ends.data(), out.data()) : Finish{};
    double begin = parts[0];
    for (const size_t producer : task.producers)
      if (!task.early) begin = std::max(begin, ends[producer]);
    for (size_t c = 0; staleness_ == 0 && task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) begin = std::max(begin, free[c]);
    ends[t] = begin + times.seconds[task.function];
    if (task.gives) out[t] = task.early ? at_best(task, begin, parts, times) : given(task, begin, times);
    if (task.early) ends[t] = out[t].back();
    for (size_t c = 0; task.cells >> c != 0; ++c)
      if ((task.cells >> c & 1U) != 0) free[c] = ends[t];
    last = std::max(last, ends[t]);
  }
  return last;
}

double Clock::bound(const Times& times) const {
  if (staleness_ == 0) return chain(times);
  return std::max(busy(times), chain(times) / static_cast<double>(staleness_ + 1));
}

double Clock::least_period(const Times& times, const std::vector<double>& transfers) const {
  COLLIMATE_CHECK(staleness_ == 0, "the least period of iterations that overlap");
  ClockRun run(*this, times, transfers, 1, true);
  run.run();
  return run.last();
}

double Clock::period(const Times& times, const std::vector<double>& transfers) const {
  const auto overlap = static_cast<size_t>(staleness_) + 1;
  ClockRun run(*this, times, transfers, staleness_ == 0 ? 1 : 3 * overlap + 1);
  run.run();
  if (staleness_ == 0) return run.last();
  // The first iterations can end in quicker succession than the devices can keep up.
  return std::max(busy(times), (run.complete(3 * overlap) - run.complete(overlap)) / static_cast<double>(2 * overlap));
}

}  // namespace collimate::plan

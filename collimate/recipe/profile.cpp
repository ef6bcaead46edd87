#include "collimate/recipe/profile.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/graph/event.h"

namespace collimate::recipe {
namespace {

std::string line(const std::string& name, const std::string& calls, double total, double self, double whole) {
  return fmt::format("{:<44} {:>8} {:>10.4f} {:>10.4f} {:>7.1f}\n", name, calls, total, self, 100 * self / whole);
}

// Returns the entries of a map, those of most `seconds` first.
template <class Map, class Seconds>
auto slowest_first(const Map& map, const Seconds& seconds) {
  std::vector<const typename Map::value_type*> entries;
  for (const auto& entry : map) entries.push_back(&entry);
  std::ranges::stable_sort(entries, [&](const auto* a, const auto* b) { return seconds(*a) > seconds(*b); });
  return entries;
}

}  // namespace

void Profile::add(const flow::CallTimes& times) {
  Iteration& iteration = running_[times.iteration];
  Function& function = iteration.functions[{times.node, times.worker}];
  ++function.time.calls;
  function.time.total_seconds += times.busy_seconds;
  function.time.self_seconds += times.busy_seconds;
  iteration.busy.emplace_back(times.begin_seconds, times.end_seconds);
  for (const tensor::OperationTime& one : times.operations) {
    Time& time = function.operations[one.name];
    time.calls += one.calls;
    time.total_seconds += one.total_seconds;
    time.self_seconds += one.self_seconds;
    function.time.self_seconds -= one.self_seconds;
  }
}

void Profile::end_iteration(int64_t iteration, double seconds) {
  Iteration ended = std::move(running_[iteration]);
  running_.erase(iteration);
  ended.number = graph::step_of(iteration);
  ended.seconds = seconds;
  if (iterations_++ == 0 || seconds > slowest_.seconds) slowest_ = std::move(ended);
}

double Profile::idle_seconds(const Iteration& iteration) {
  std::vector<std::pair<double, double>> busy = iteration.busy;
  std::ranges::sort(busy);
  double covered = 0, until = 0;
  for (const auto& [begin, end] : busy) {
    covered += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return std::max(0.0, iteration.seconds - covered);
}

std::string Profile::table() const {
  const double whole = std::max(slowest_.seconds, 1e-9);
  std::string out = fmt::format("iteration {}, the slowest of {}: {:.4f} s\n{:<44} {:>8} {:>10} {:>10} {:>7}\n",
                                slowest_.number, iterations_, slowest_.seconds, "function, and its operations", "calls",
                                "total s", "self s", "self %");
  const auto of_function = [](const auto& entry) { return entry.second.time.total_seconds; };
  const auto of_operation = [](const auto& entry) { return entry.second.self_seconds; };
  for (const auto* function : slowest_first(slowest_.functions, of_function)) {
    const auto& [place, spent] = *function;
    out += line(fmt::format("{} (worker {})", place.first, place.second), std::to_string(spent.time.calls),
                spent.time.total_seconds, spent.time.self_seconds, whole);
    for (const auto* operation : slowest_first(spent.operations, of_operation))
      out += line("  " + operation->first, std::to_string(operation->second.calls), operation->second.total_seconds,
                  operation->second.self_seconds, whole);
  }
  const double idle = idle_seconds(slowest_);
  return out + line("while no function ran", "", idle, idle, whole);
}

}  // namespace collimate::recipe

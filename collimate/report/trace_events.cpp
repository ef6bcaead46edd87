#include "collimate/report/trace_events.h"

#include <algorithm>
#include <set>
#include <utility>

namespace collimate::report {

namespace {

using Json = nlohmann::ordered_json;
using Lane = std::pair<int64_t, int64_t>;  // process (a worker), thread

struct RawEvent {
  TraceEvent event;
  Lane lane;
  int64_t iteration = -1;
};

std::vector<RawEvent> complete_events(const Json& events, std::map<int64_t, std::string>& workers) {
  std::vector<RawEvent> found;
  for (const Json& event : events) {
    const std::string kind = event.value("ph", "");
    const int64_t worker = event.value("pid", int64_t{0});
    const Json args = event.value("args", Json::object());
    if (kind == "M" && event.value("name", "") == "process_name") workers[worker] = args.value("name", "");
    if (kind != "X") continue;
    RawEvent raw;
    raw.event.name = event.value("name", "");
    raw.event.begin_seconds = event.value("ts", 0.0) * 1e-6;
    raw.event.end_seconds = raw.event.begin_seconds + event.value("dur", 0.0) * 1e-6;
    raw.lane = {worker, event.value("tid", int64_t{0})};
    raw.iteration = args.value("iteration", int64_t{-1});
    found.push_back(std::move(raw));
  }
  return found;
}

// Returns the last but one iteration, as the last may have been cut short, or hold the end of the run.
int64_t iteration_to_show(const std::vector<RawEvent>& events) {
  std::set<int64_t> seen;
  for (const RawEvent& raw : events) seen.insert(raw.iteration);
  seen.erase(-1);
  if (seen.empty()) return -1;
  return seen.size() == 1 ? *seen.begin() : *std::next(seen.rbegin());
}

}  // namespace

void read_trace(const Json& document, RunData& run) {
  std::map<int64_t, std::string> workers;
  const Json none = Json::array();
  const Json& list = document.is_object() && document.contains("traceEvents") ? document["traceEvents"] : document;
  std::vector<RawEvent> events = complete_events(list.is_array() ? list : none, workers);
  run.trace_iteration = iteration_to_show(events);
  std::erase_if(events, [&](const RawEvent& raw) { return raw.iteration != run.trace_iteration; });
  std::stable_sort(events.begin(), events.end(), [](const RawEvent& a, const RawEvent& b) {
    return std::pair(a.lane, a.event.begin_seconds) < std::pair(b.lane, b.event.begin_seconds);
  });
  std::map<int64_t, std::set<int64_t>> threads;
  double start = events.empty() ? 0 : events.front().event.begin_seconds;
  for (const RawEvent& raw : events) {
    threads[raw.lane.first].insert(raw.lane.second);
    start = std::min(start, raw.event.begin_seconds);
  }
  for (RawEvent& raw : events) {
    const auto [worker, thread] = raw.lane;
    const auto name = workers.find(worker);
    raw.event.lane = name != workers.end() && !name->second.empty() ? name->second : "worker " + std::to_string(worker);
    if (threads[worker].size() > 1) raw.event.lane += " / " + std::to_string(thread);
    raw.event.begin_seconds -= start;
    raw.event.end_seconds -= start;
    run.trace.push_back(std::move(raw.event));
  }
}

}  // namespace collimate::report

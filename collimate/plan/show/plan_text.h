#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/search/search.h"
#include "collimate/plan/show/columns.h"
#include "collimate/plan/simulate/timeline.h"

namespace collimate::plan {

// A run of so many iterations costs this, in all and by kind of device.
struct KindCost {
  DeviceKind gpu;
  int devices = 0;
  double device_hours = 0, dollars = 0;
};
struct RunCost {
  double hours = 0, device_hours = 0, dollars = 0;
  std::vector<KindCost> kinds;
};
RunCost run_cost(const Request& request, double iteration_seconds, int64_t iterations);

// "100 iterations: 3.1 h, 24.8 GPU-hours, $39.70 at $1.60 an hour (assumed: --price)"; of several kinds with the part
// of each behind a colon.
std::string cost_text(const Request& request, double iteration_seconds, int64_t iterations);

// "1024 rows an iteration, tokens of a prompt: 512, of a completion: 498 on average and at most 1536; constants of
// collimate-cpu": what was planned for.
std::string workload_text(const Request& request);

// Texts for people, with lines of at most `columns` characters, of which 80 do.
//
// Form, groups, cluster and staleness of a plan; its seconds, tokens per second and what a run costs.
std::string heading_text(const Request& request, const Plan& plan, int64_t iterations, int columns = kTextColumns);
// One plan for people: devices over time as a picture, seconds by cause, memory bars, idle time and what it waits for.
std::string plan_text(const Request& request, const Plan& plan, const Timeline& timeline, int columns = kTextColumns);
// Shows what the search found: the best plan, its cost for a run, the runner-ups and why they lose.
std::string search_text(const Request& request, const SearchResult& result, int64_t iterations,
                        int columns = kTextColumns);
// Gives the same as data.
nlohmann::ordered_json run_json(const Request& request, double iteration_seconds, int64_t iterations);
nlohmann::ordered_json plan_json(const Request& request, const Plan& plan, const Timeline& timeline);
nlohmann::ordered_json search_json(const Request& request, const SearchResult& result, int64_t iterations);

// The parts of plan_text: what devices do in a period; seconds by cause under a heading, a row for each function; bars
// of memory.
std::string picture_text(const Plan& plan, const Timeline& timeline, int columns = kTextColumns);
std::string calls_heading(int columns = kTextColumns);
std::string call_row(const std::string& label, const Call& call, int columns = kTextColumns);
std::string memory_text(const Request& request, const Plan& plan, int columns = kTextColumns);
// Every item of memory: what stays on devices with the same models, and what each phase needs beside it, with the sum.
std::string phase_memory_text(const Request& request, const Plan& plan, int columns = kTextColumns);
// ", staleness 1"; "" for none.
std::string staleness_text(const Plan& plan);
// "tp 2 · dp 4 · zero 1 · rows 8 · recompute".
std::string layout_text(const Execution& how);
// Names what a plan loses most by against a faster one: device time of a function, or idle time.
std::string loss_text(const Plan& faster, const Plan& slower);
// InputError that names the reason, and how many devices would do, when there is no plan.
void require_plan(const Request& request, const SearchResult& result);

}  // namespace collimate::plan

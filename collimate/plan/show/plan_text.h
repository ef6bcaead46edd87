#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/search/search.h"
#include "collimate/plan/show/columns.h"
#include "collimate/plan/simulate/timeline.h"

namespace collimate::plan {

// RunCost is the cost of a run, and KindCost the part of its devices of one kind.
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

// Writes "100 iterations: 3.1 h, 24.8 GPU-hours, $39.70 at $1.60 an hour (assumed: --price)"; for several kinds, the
// part of each follows behind a colon.
std::string cost_text(const Request& request, double iteration_seconds, int64_t iterations);

// Says what was planned for: "1024 rows an iteration, tokens of a prompt: 512, of a completion: 498 on average and at
// most 1536; constants of collimate-cpu".
std::string workload_text(const Request& request);

// These functions write texts for people, with lines of at most `columns` characters, of which 80 suffice.
//
// Writes form, groups, cluster and staleness of a plan, its seconds, tokens per second and what a run costs.
std::string heading_text(const Request& request, const Plan& plan, int64_t iterations, int columns = kTextColumns);
// Shows one plan for people: devices over time as a picture, with idle time and what it waits for; seconds by cause;
// and bars of memory.
std::string plan_text(const Request& request, const Plan& plan, const Timeline& timeline, int columns = kTextColumns);
// Shows what the search found: the best plan, its cost for a run, the runner-ups and why they lose.
std::string search_text(const Request& request, const SearchResult& result, int64_t iterations,
                        int columns = kTextColumns);
// These give the cost of a run, a plan and what the search found as JSON.
nlohmann::ordered_json run_json(const Request& request, double iteration_seconds, int64_t iterations);
nlohmann::ordered_json plan_json(const Request& request, const Plan& plan, const Timeline& timeline);
nlohmann::ordered_json search_json(const Request& request, const SearchResult& result, int64_t iterations);

// These are the parts of plan_text: a picture of what devices do in a period; seconds by cause as a heading and a row
// for each function; and bars of memory.
std::string picture_text(const Plan& plan, const Timeline& timeline, int columns = kTextColumns);
std::string calls_heading(int columns = kTextColumns);
std::string call_row(const std::string& label, const Call& call, int columns = kTextColumns);
std::string memory_text(const Request& request, const Plan& plan, int columns = kTextColumns);
// Lists every item of memory: what stays on devices with the same models, and what each phase needs beside it, with the
// sum.
std::string phase_memory_text(const Request& request, const Plan& plan, int columns = kTextColumns);
// Writes ", staleness 1"; "" for none.
std::string staleness_text(const Plan& plan);
// Writes "tp 2 · pp 1 · dp 4 · zero 1 · rows 8 · recompute".
std::string layout_text(const Execution& how);
// Names what a plan loses most by against a faster one: device time of a function, or idle time.
std::string loss_text(const Plan& faster, const Plan& slower);
// Throws InputError when there is no plan, which names the reason and a remedy, such as the devices that would do.
void require_plan(const Request& request, const SearchResult& result);

}  // namespace collimate::plan

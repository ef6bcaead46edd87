#pragma once

#include <string>
#include <vector>

#include "collimate/report/chart.h"
#include "collimate/report/run_data.h"

namespace collimate::report {

// The curves a run has values for, in the order of interest; every metric is also in draw_all_metrics().
struct Curves {
  std::vector<Chart> charts;
  std::vector<std::string> zeros;  // "title (line)" of what stayed below 1e-7 and is not drawn
};
Curves curves_of(const RunData& run);

std::string draw_tiles(const RunData& run);        // the few numbers one looks for first
std::string draw_samples(const RunData& run);      // the same prompts before and after, with their rewards
std::string draw_memory(const RunData& run);       // planned and taken, by item
std::string draw_facts(const RunData& run);        // config, versions and everything else in summary.json
std::string draw_all_metrics(const RunData& run);  // a table: first, last, lowest, highest

}  // namespace collimate::report

#pragma once

#include <string>
#include <vector>

#include "collimate/report/chart.h"
#include "collimate/report/run_data.h"

namespace collimate::report {

// Curves are those of a page, in the order of interest; every metric is also in draw_all_metrics().
struct Curves {
  std::vector<Chart> charts;
  std::vector<std::string> zeros;      // "title (line)": stayed below 1e-7 and is not drawn
  std::vector<std::string> constants;  // "title (line) 0.001": never changed
  std::vector<std::string> repeats;    // "title (line) is title (line)": another curve shows it already
};
Curves curves_of(const RunData& run);
// Returns a chart for each fact that any of the runs has, with a curve for each run, labelled with the run's name.
Curves curves_of(const std::vector<RunData>& runs);
std::string draw_curves(const Curves& curves);  // the section, with what is not drawn and why

// A Tile is one of the few numbers that one looks for first.
struct Tile {
  std::string value, label;
  std::string detail;  // how it was taken; "" where that is plain
};
std::vector<Tile> tiles_of(const RunData& run);      // without those that say nothing of their own
std::vector<Tile> all_tiles_of(const RunData& run);  // with these too, to stand beside another run's

std::string draw_tiles(const RunData& run);
std::string draw_samples(const RunData& run);                // the same prompts before and after, with their rewards
std::string draw_samples(const std::vector<RunData>& runs);  // the same prompts in each run
std::string draw_warnings(const RunData& run);     // what the run has said of itself (recipe/learning_watch.h)
std::string draw_memory(const RunData& run);       // planned and taken, by item
std::string draw_facts(const RunData& run);        // config, versions and everything else in summary.json
std::string draw_all_metrics(const RunData& run);  // a table: first, last, lowest, highest

}  // namespace collimate::report

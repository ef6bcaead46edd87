#pragma once

#include <string>
#include <vector>

#include "collimate/report/run_data.h"

namespace collimate::report {

// PhaseTimes has the seconds of one phase, per bar of the picture and in total. Phases are the metrics
// `timing_s/<name>` except `step`, named by phase_words(); then what iterations spent outside of these phases, and what
// the run spent outside of iterations and evaluations.
struct PhaseTimes {
  std::string name;
  std::vector<double> per_bar;
  double total = 0;
};

struct PhaseTable {
  std::vector<PhaseTimes> phases;  // longest first; the two for other time come last
  std::vector<double> bar_starts;  // first step of each bar
  double steps_per_bar = 1;
  double total = 0;  // of all phases
};

// Makes a table of at most 60 bars; a bar of several steps holds their mean.
PhaseTable phase_table(const RunData& run);

std::string draw_phases(const PhaseTable& table);  // stacked bars over the steps, and the totals; "" without phases
std::string draw_timeline(const RunData& run);     // which function ran when on which worker; "" without a trace

}  // namespace collimate::report

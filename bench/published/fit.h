#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "bench/published/measure.h"

namespace collimate::plan::published {

// A row that constants may be fitted to, ready to be compared.
struct Sample {
  Scenario scenario;
  Measure measure;
  double published = 0;
  std::string paper, size;  // of which some are left out in turn; the size is the actor's
  int row = 0;
  std::map<std::string, Execution> layouts = {};  // chosen once for several evaluations; empty: chosen each time
};
using Samples = std::vector<Sample>;
// Groups samples by back end; those that the defaults cannot predict are left out.
std::map<std::string, Samples> by_backend(const Samples& samples);

// The constants of a back end that bring predictions nearest to the samples: coordinate descent on the mean absolute
// logarithm of the ratios, from the defaults, with a weak pull back to them. Deterministic. The defaults when there are
// no samples.
Constants fit(const Samples& samples, const std::string& backend);
// Mean absolute logarithm of predicted over published.
double mismatch(const Samples& samples, const Constants& constants);

// Lists what a fit may move, in the order in which it tries.
const std::array<double Constants::*, 12>& fitted_members();
bool is_fitted_member(double Constants::*member);
// A back end as plan/inputs/backends.cpp has it, with what is known beside the fit.
std::string backend_row(const std::string& backend, const Constants& fitted);

// Error on rows that had no part in the fit.
struct HeldOut {
  std::string kind;  // "paper" or "size"
  std::string name;  // of what was left out
  std::string backend;
  int rows = 0;
  double median_error = 0;
};
// Leaves out one paper, then one actor size at a time, and fits each back end on what remains.
std::vector<HeldOut> held_out(const std::map<std::string, Samples>& samples);

}  // namespace collimate::plan::published

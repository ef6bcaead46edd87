#pragma once

#include <string>
#include <vector>

#include "collimate/plan/published/fitted_rows.h"
#include "collimate/plan/published/results.h"

namespace collimate::plan::published {

// Whether constants may be fitted to a row: it times a whole run or phase, states what was run, and is none of those
// that are kept to be predicted (docs/planner.md, "Against published results": back ends that are not `fitted`, verl
// beyond 64 devices, one of two forms of the same measurement).
bool may_fit(const Row& row, const Scenario& scenario);

// One measurement ready to be compared.
struct Sample {
  const Row* row;
  Scenario scenario;
  double published;
  std::map<std::string, Execution> layouts = {};  // chosen once for several evaluations; empty: chosen each time
};
// Those rows that may be fitted, of one back end.
std::vector<Sample> samples_of(const std::vector<Row>& rows, const std::string& backend);

// The constants of a back end that bring predictions nearest to the samples: coordinate descent on the mean absolute
// logarithm of the ratios, from the defaults, with a weak pull back to them. Deterministic. The defaults when there are
// no samples.
Constants fit(const std::vector<Sample>& samples, const std::string& backend);
// Mean absolute logarithm of predicted over published.
double mismatch(const std::vector<Sample>& samples, const Constants& constants);

// A back end's constants fitted to all rows that may be: where the values of plan/inputs/backends.cpp come from.
struct FittedBackend {
  std::string name;
  int rows = 0;
  double mismatch = 0;
  Constants constants;
};
// Of all back ends, or of those named.
std::vector<FittedBackend> fit_all(const std::vector<Row>& rows, const std::vector<std::string>& only = {});

// The rows of all back ends that a fit takes, in order.
std::vector<FittedRow> rows_to_fit(const std::vector<Row>& rows);

// Error on rows that had no part in the fit.
struct HeldOut {
  std::string kind;  // "paper" or "size"
  std::string name;  // of what was left out
  std::string backend;
  int rows = 0;
  double median_error = 0;
};
// Leaves out one paper, then one actor size at a time, and fits each back end on what remains.
std::vector<HeldOut> held_out(const std::vector<Row>& rows);

}  // namespace collimate::plan::published

#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "bench/published/measure.h"
#include "collimate/base/fields.h"

namespace collimate::plan::published {

// A Sample is a published row that constants may be fitted to, ready to be compared with a prediction.
struct Sample {
  Scenario scenario;
  Measure measure;
  double published = 0;
  std::string paper, size;  // held_out() leaves out one of these at a time; the size is the actor's
  int row = 0;
  std::map<std::string, Execution> layouts = {};  // by phase, for several evaluations; empty: chosen at each one
};
using Samples = std::vector<Sample>;
// Groups samples by back end and leaves out those that cannot be predicted with the default constants.
std::map<std::string, Samples> by_backend(const Samples& samples);

// Returns the constants of a back end that bring predictions nearest to the samples, found by coordinate descent on
// mismatch() with a weak pull to the defaults, from several starts. Deterministic. Without samples, returns the
// defaults.
Constants fit(const Samples& samples, const std::string& backend);
// Returns the mean absolute logarithm of predicted over published, smoothed near 0; 0 without samples.
double mismatch(const Samples& samples, const Constants& constants);

// Returns the constants that a fit may move, in the order in which it tries them.
const std::array<double Constants::*, 12>& fitted_members();
bool is_fitted_member(double Constants::*member);
// Returns a back end's entry for plan/inputs/backends.cpp as C++ text: the fitted values, then those known otherwise.
std::string backend_row(const std::string& backend, const Constants& fitted);

// A HeldOut is the error of a fit on rows that were left out of it.
struct HeldOut {
  std::string left_out;  // "paper" or "size"
  std::string name;      // of the paper or size that was left out
  std::string backend;
  int rows = 0;
  double median_error = 0;

  COLLIMATE_FIELDS(backend, left_out, name, rows, median_error)
};
// Leaves out one paper, then one actor size at a time, and fits each back end on what remains.
std::vector<HeldOut> held_out(const std::map<std::string, Samples>& samples);

}  // namespace collimate::plan::published

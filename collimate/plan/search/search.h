#pragma once

#include <limits>
#include <string>
#include <vector>

#include "collimate/plan/plan.h"

namespace collimate::plan {

// The simpler of two plans this close in seconds is taken.
inline constexpr double kAlike = 1.005;

// The best plan of one staleness.
struct Synchrony {
  int staleness = 0;
  double seconds = 0;  // infinite: none that pays over less staleness
  std::string form, parts;
};

struct SearchResult {
  std::vector<Plan> plans;           // the best of each form (form.h), the fastest in the simulator first
  int64_t placements = 0;            // that were bounded
  int64_t pruned = 0;                // of them, by their bound
  int64_t cut_short = 0;             // of them, whose layouts were not all looked at: their best may be better
  int64_t steps = 0;                 // partial plans that were looked at
  bool cut_rows = false;             // Request::cut_rows was needed
  double seconds = 0;                // best estimate of an iteration; infinity where nothing fits
  std::string why;                   // nothing fits: what does not
  double excess_bytes = 0;           // nothing fits: those that the nearest miss lacks by Request::excess
  std::vector<Synchrony> synchrony;  // search_within_staleness: every staleness that was tried
};

// The fastest plans: placements by set partition of the models with sizes of slices, branch and bound over the fronts
// of every function's layouts, finer sizes around the best, and the last few ranked by graph::Schedule in virtual time.
// Where devices are of several kinds, those of all, and of every part of the kinds with the others left unused. With
// the request's staleness. Where a `limit` is given, only plans whose estimate is below it. Deterministic. InputError
// as check().
SearchResult search(const Request& request, double limit = std::numeric_limits<double>::infinity());

// Searches with the request's staleness as a bound: 0, 1, 2, 4 and the bound itself are tried, each against the best of
// less. The fastest plan comes first, of those within 0.5 % the one with the least staleness; of every form the
// fastest.
SearchResult search_within_staleness(const Request& request);

}  // namespace collimate::plan

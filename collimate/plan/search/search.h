#pragma once

#include <limits>
#include <string>
#include <vector>

#include "collimate/plan/plan.h"

namespace collimate::plan {

// Two plans whose seconds differ by no more than this factor count as equally fast: the simpler one is taken.
inline constexpr double kAlike = 1.005;

// Synchrony tells the best plan of one staleness.
struct Synchrony {
  int staleness = 0;
  double seconds = 0;  // infinite: no plan gains enough over less staleness
  std::string form, parts;
};

struct SearchResult {
  std::vector<Plan> plans;           // the best of each form (form.h), the fastest in the simulator first
  int64_t placements = 0;            // whose seconds were bounded
  int64_t pruned = 0;                // of these, ruled out by their bound
  int64_t cut_short = 0;             // of these, not looked at in all layouts: their best may be better
  int64_t steps = 0;                 // partial plans that were looked at
  bool cut_rows = false;             // Request::cut_rows was needed
  double seconds = 0;                // best estimate of an iteration; infinity where nothing fits
  std::string why;                   // where nothing fits: what does not
  double excess_bytes = 0;           // where nothing fits: what the nearest miss lacks by Request::excess
  std::vector<Synchrony> synchrony;  // every staleness that search_within_staleness() tried
};

// Finds the fastest plans with the request's staleness. Placements are set partitions of the models with sizes of
// slices (of many models: those that a local search finds); branch and bound goes over the fronts of every function's
// layouts; then finer sizes are tried around the best plans, and the last few are ranked by graph::Schedule in virtual
// time. Where devices are of several kinds, plans may leave some kinds unused. Plans whose estimate is not below
// `limit` are left out. The result is deterministic. Throws InputError as check() does, for more than 4 kinds and for
// more than 32 calls.
SearchResult search(const Request& request, double limit = std::numeric_limits<double>::infinity());

// Searches with the request's staleness as a bound: tries 0, 1, 2, 4 and the bound itself, each of which must beat the
// best of less. The first plan is the fastest or, of those within 0.5 % of it, the one with the least staleness; the
// others are the fastest of every other form.
SearchResult search_within_staleness(const Request& request);

}  // namespace collimate::plan

#pragma once

#include <string>
#include <vector>

#include "collimate/plan/plan.h"

namespace collimate::plan {

struct SearchResult {
  std::vector<Plan> plans;  // the best of each form (form.h), the fastest in the simulator first
  int64_t placements = 0;   // that were bounded
  int64_t pruned = 0;       // of them, by their bound
  int64_t cut_short = 0;    // of them, whose layouts were not all looked at: their best may be better
  double seconds = 0;       // best estimate of an iteration; infinity where nothing fits
  std::string why;          // nothing fits: what does not
};

// The fastest plans: placements by set partition of the models with sizes of slices, branch and bound over the fronts
// of every function's layouts, finer sizes around the best, and the last few ranked by graph::Schedule in virtual time.
// Deterministic. InputError as check().
SearchResult search(const Request& request);

// The best estimate by trying every placement with every layout of every function, without fronts and bounds: what
// certifies search() on small cases. Nothing is simulated.
SearchResult search_exhaustively(const Request& request);

}  // namespace collimate::plan

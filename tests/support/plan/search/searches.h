#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/plan/inputs/sample_request.h"
#include "tests/support/plan/search/exhaustive.h"

namespace collimate::plan {

// Branch and bound over fronts against trying everything: by what part the search misses the best of all; 0 where no
// plan fits, as both then say.
inline double gap_to_the_best(const char* model, const char* cluster, int staleness) {
  Request request = request_for(model, cluster, "grpo,64,256x512");
  request.micro_batch = 4;
  request.load.staleness = staleness;
  const SearchResult quick = search(request), full = search_exhaustively(request);
  EXPECT_EQ(quick.plans.empty(), std::isinf(full.seconds)) << cluster << " " << model;
  if (quick.plans.empty()) return 0;
  EXPECT_GE(quick.seconds, full.seconds - 1e-9) << cluster << " " << model;
  return quick.seconds / full.seconds - 1;
}

}  // namespace collimate::plan

#pragma once

#include "collimate/plan/search/search.h"

namespace collimate::plan {

// The best estimate by trying every placement with every layout of every function, without fronts and bounds: what
// certifies search() on small cases. Nothing is simulated.
SearchResult search_exhaustively(const Request& request);

}  // namespace collimate::plan

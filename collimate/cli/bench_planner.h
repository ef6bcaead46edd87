#pragma once

#include "collimate/cli/verbs.h"

namespace collimate::cli {

// Runs `collimate bench planner --results FILE.csv`: prints the published and the predicted number of every row, then
// medians per source.
int bench_planner(const Arguments& arguments);

}  // namespace collimate::cli

#pragma once

#include "collimate/cli/verbs.h"

namespace collimate::cli {

// `collimate bench planner --results FILE.csv`: every row published and predicted, then medians per source.
int bench_planner(const Arguments& arguments);

}  // namespace collimate::cli

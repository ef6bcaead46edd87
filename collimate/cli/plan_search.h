#pragma once

#include "collimate/cli/plan_request.h"
#include "collimate/plan/search/search.h"

namespace collimate::cli {

// Searches the placements of `made`, which plan_request(options) gave. Where a config's models fit no CPU whole and
// the options leave open how models may be split, layouts of every kind are searched, too: `options` and `made` then
// say so, and every plan is one that the run accepts and that its own count of bytes holds to run.memory_budget.
collimate::plan::SearchResult search_plans(PlanOptions& options, PlanRequest& made);

}  // namespace collimate::cli

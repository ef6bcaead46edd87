#include "collimate/cli/plan_search.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

// A placement that the run refuses lacks more than any memory gives.
plan::Excess unless_refused(const std::function<plan::Excess(const graph::Placement&)>& excess,
                            const graph::Placement& placement) {
  try {
    return excess(placement);
  } catch (const base::InputError& error) {
    return {.bytes = std::numeric_limits<double>::infinity(), .why = error.what(), .devices = {}};
  }
}

// Where the run counts more bytes than the cost model does, the cost model gets less memory by what was missing. Where
// nothing fits, the last that the run counted says why, `why` if it counted nothing.
plan::SearchResult search_within_budget(plan::Request& request, std::string why) {
  constexpr int kMostSearches = 6;
  plan::SearchResult result;
  for (int searches = 0; searches < kMostSearches; ++searches) {
    result = plan::search_within_staleness(request);
    const bool counted = result.excess_bytes > 0 && !std::isinf(result.excess_bytes);
    if (counted || !request.excess) why = result.why;
    result.why = why;
    if (!result.plans.empty() || !counted) break;
    for (plan::NodeGroup& group : request.cluster.groups)
      group.gpu.memory_bytes -= result.excess_bytes / request.constants.usable_memory;
  }
  return result;
}

}  // namespace

plan::SearchResult search_plans(PlanOptions& options, PlanRequest& made) {
  plan::SearchResult whole = plan::search_within_staleness(made.request);
  const bool own_devices = !options.config->empty() && made.request.cluster.has_cpus();
  if (!whole.plans.empty() || !own_devices || !options.layouts->empty()) return whole;
  options.layouts = "any";
  PlanRequest any = plan_request(options);
  plan::Request& request = any.request;
  request.constants = made.request.constants;
  request.keep = made.request.keep;
  if (made.request.excess) {
    plan::set_constant(request.constants, "workspace_bytes=0");  // the run counts its own
    request.excess = [excess = made.request.excess](const graph::Placement& placement) {
      return unless_refused(excess, placement);
    };
  }
  made = std::move(any);
  return search_within_budget(made.request, whole.why);
}

}  // namespace collimate::cli

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "collimate/plan/search/search.h"

namespace collimate::plan {
namespace {

constexpr int kPlansOfMoreStaleness = 3;  // plans of each staleness above 0, at most

// Returns the stalenesses to try, in ascending order: a few below the bound, and the bound.
std::vector<int> staleness_values(int bound) {
  std::vector<int> values;
  for (const int staleness : {0, 1, 2, 4})
    if (staleness < bound) values.push_back(staleness);
  values.push_back(bound);
  return values;
}

void add_synchrony(SearchResult& all, SearchResult more, int staleness) {
  Synchrony best{staleness, std::numeric_limits<double>::infinity(), "", ""};
  if (!more.plans.empty()) {
    const Plan& plan = more.plans[0];
    best = {staleness, plan.seconds, plan.form, plan.parts};
  }
  all.synchrony.push_back(best);
  all.placements += more.placements;
  all.pruned += more.pruned;
  all.cut_short += more.cut_short;
  all.steps += more.steps;
  all.cut_rows = all.cut_rows || more.cut_rows;
  all.seconds = std::min(all.seconds, more.seconds);
  std::move(more.plans.begin(), more.plans.end(), std::back_inserter(all.plans));
}

// Sorts plans by seconds and puts the one to take first: of those that are about as fast as the fastest, the one with
// the least staleness, then with the fewest groups.
void take_first(std::vector<Plan>& plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) { return a.seconds < b.seconds; });
  const double close = kAlike * plans.front().seconds;
  const auto end = std::find_if(plans.begin(), plans.end(), [&](const Plan& plan) { return plan.seconds > close; });
  const auto taken = std::min_element(plans.begin(), end, [](const Plan& a, const Plan& b) {
    return std::tuple(a.placement.staleness, a.placement.groups.size()) <
           std::tuple(b.placement.staleness, b.placement.groups.size());
  });
  std::rotate(plans.begin(), taken, taken + 1);
}

// Keeps the first plan of every form, and at most `most` plans.
void keep_forms(std::vector<Plan>& plans, size_t most) {
  std::set<std::string> seen;
  std::erase_if(plans, [&](const Plan& plan) { return !seen.insert(plan.form).second; });
  if (plans.size() > most) plans.resize(most);
}

}  // namespace

SearchResult search_within_staleness(const Request& request) {
  const int bound = request.load.staleness;
  Request tried = request;
  double fastest = std::numeric_limits<double>::infinity();
  SearchResult all;
  all.seconds = fastest;
  for (const int staleness : staleness_values(bound)) {
    tried.load.staleness = staleness;
    tried.keep = staleness == 0 ? request.keep : std::min(request.keep, kPlansOfMoreStaleness);
    SearchResult found = search(tried, fastest / kAlike);
    // Memory does not depend on staleness: what does not fit without any does not fit at all.
    if (bound == 0 || (staleness == 0 && found.plans.empty())) return found;
    tried.cut_rows = tried.cut_rows || found.cut_rows;
    for (const Plan& plan : found.plans) fastest = std::min(fastest, plan.seconds);
    add_synchrony(all, std::move(found), staleness);
  }
  take_first(all.plans);
  keep_forms(all.plans, static_cast<size_t>(std::max(request.keep, 1)));
  return all;
}

}  // namespace collimate::plan

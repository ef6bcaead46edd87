#include "collimate/plan/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/immovable.h"
#include "collimate/plan/form.h"
#include "collimate/plan/search/found.h"
#include "collimate/plan/search/neighbours.h"
#include "collimate/plan/search/nothing_fits.h"
#include "collimate/plan/search/placements.h"
#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::plan {
namespace {

constexpr size_t kMostCalls = 32;  // bits of one word stand for functions, and for cells of models
constexpr double kNoPlanSeconds = std::numeric_limits<double>::infinity();
// A search looks at up to kMostSteps partial plans of one placement; with staleness each takes longer, and it looks at
// kMostStepsAhead / (staleness + 1) if that is fewer. Once so many steps are spent as kPlacementsInFull placements may
// take, the other placements, whose bounds are higher, get kFewSteps each.
constexpr int64_t kMostSteps = 3000, kMostStepsAhead = 6000, kPlacementsInFull = 100, kFewSteps = 50;

int64_t steps_allowed(int staleness) { return std::min(kMostSteps, kMostStepsAhead / (staleness + 1)); }

// Best has the best plan of each form seen so far, of which the `keep` fastest matter.
class Best {
 public:
  Best(int keep, double limit) : keep_(static_cast<size_t>(std::max(keep, 1))), limit_(limit), worst_kept_(limit) {}

  // Returns the seconds that a plan of this form must beat to be reported.
  double limit(const std::string& form) const {
    const auto same = found_.find(form);
    return same == found_.end() ? worst_kept_ : std::min(same->second.seconds, worst_kept_);
  }
  double worst_kept() const { return worst_kept_; }
  void add(const std::string& form, Found found) {
    found_[form] = std::move(found);
    std::vector<double> all;
    for (const auto& [name, other] : found_) all.push_back(other.seconds);
    std::sort(all.begin(), all.end());
    worst_kept_ = all.size() >= keep_ ? all[keep_ - 1] : limit_;
  }
  // Returns the plans that are kept, the fastest first.
  std::vector<Found> found() const {
    std::vector<Found> sorted;
    for (const auto& [name, found] : found_) sorted.push_back(found);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Found& a, const Found& b) { return a.seconds < b.seconds; });
    if (sorted.size() > keep_) sorted.resize(keep_);
    return sorted;
  }

 private:
  size_t keep_;
  double limit_, worst_kept_;
  std::map<std::string, Found> found_;
};

// Ground is a subcluster with its placements and the costs of functions on it.
struct Ground : private base::Immovable {
  explicit Ground(const Subcluster& on)
      : request(on.request), functions(request), table(request, functions, true), placements() {
    for (Slots& slots : all_placements(request, functions, table)) placements.push_back(std::move(slots));
  }

  const Request& request;
  const Functions functions;
  ChoiceTable table;
  std::deque<Slots> placements;
};

// Bounded is a placement of a subcluster, none of whose plans is faster than the bound.
struct Bounded {
  double bound = 0;
  size_t subcluster = 0, placement = 0;
};

std::vector<Seat> seats_of(const graph::Graph& graph, const std::vector<std::string>& models, const Slots& slots) {
  std::vector<Seat> seats;
  for (const Slot& slot : slots)
    for (const int model : slot.models) {
      seats.push_back(seat_of(graph, base::at(models, model)));
      for (int c = 0; cells_of(slots, slot) >> c != 0; ++c)
        if ((cells_of(slots, slot) >> c & 1U) != 0) seats.back().places.insert(c);
    }
  return seats;
}

class Search {
 public:
  Search(const Request& request, double limit)
      : request_(request),
        subclusters_(subclusters(request)),
        best_(request.form.empty() ? request.keep : static_cast<int>(form_names().size()), limit) {
    for (const Subcluster& each : subclusters_) grounds_.emplace_back(each);
  }

  SearchResult run() {
    for (size_t s = 0; s < grounds_.size(); ++s) bound(s, 0);
    look_at_all();
    if (searches_locally()) improve();
    std::vector<Found> found = best_.found();
    if (!request_.form.empty()) std::erase_if(found, [&](const Found& each) { return !has_asked_form(each.slots); });
    for (Found& each : found) {
      if (!each.in_turn.empty()) continue;
      Ground& ground = grounds_[each.subcluster];
      Found finer = each;
      refine(ground.request, ground.functions, ground.table, finer);
      if (runs(finer) && finer.seconds < each.seconds) each = std::move(finer);  // models of it may take turns
    }
    for (const Found& each : found) result_.plans.push_back(simulated(each));
    rank();
    if (found.empty()) {
      result_.why = why();
      result_.excess_bytes = least_excess_.bytes;
    }
    return std::move(result_);
  }

 private:
  // Bounds the placements of a subcluster from index `first` on, and keeps those that may fit for look_at_all().
  void bound(size_t subcluster, size_t first) {
    Ground& on = grounds_[subcluster];
    for (size_t i = first; i < on.placements.size(); ++i)
      if (wanted(on.placements[i]))
        if (const Assignment made(on.request, on.functions, on.table, on.placements[i]); made.feasible())
          order_.push_back({made.bound(), subcluster, i});
  }
  // Returns whether to look at a placement. A local search may come to the requested form from another one.
  bool wanted(const Slots& slots) { return request_.form.empty() || searches_locally() || has_asked_form(slots); }
  bool has_asked_form(const Slots& slots) const {
    return has_form(seats_of(request_.graph, grounds_.front().functions.models, slots),
                    static_cast<int>(cells(slots).size()), request_.form);
  }
  bool searches_locally() const {
    return static_cast<int>(grounds_.front().functions.models.size()) > request_.enumerated_models;
  }

  // Looks at the most promising placements first, as an early good plan prunes the rest.
  void look_at_all() {
    std::stable_sort(order_.begin(), order_.end(),
                     [](const Bounded& a, const Bounded& b) { return a.bound < b.bound; });
    for (const Bounded& next : std::exchange(order_, {})) look_at(next);
  }

  // Searches locally: looks at the neighbours of every plan that is kept, for as long as one of them is kept too.
  void improve() {
    std::set<std::string> seen, left;
    for (bool found = true; found;) {
      found = false;
      for (const Found& kept : best_.found()) {
        Ground& on = grounds_[kept.subcluster];
        const std::string name = std::to_string(kept.subcluster) + " ";
        if (!left.insert(name + slots_text(kept.slots, on.functions.models)).second) continue;
        found = true;
        const size_t known = on.placements.size();
        const int unit = least_slice(on.request.cluster, devices_of(kept.slots));
        for (Slots& next : neighbours(kept.slots, unit, on.request.cluster.borders()))
          if (seen.insert(name + form_text(next, on.functions.models) + slots_text(next, on.functions.models)).second)
            on.placements.push_back(std::move(next));
        bound(kept.subcluster, known);
      }
      look_at_all();
    }
  }

  const std::string& form(const Slots& slots) {
    const std::vector<std::string>& models = grounds_.front().functions.models;
    std::string& known = forms_[form_text(slots, models)];
    if (known.empty()) known = form_of(seats_of(request_.graph, models, slots), static_cast<int>(cells(slots).size()));
    return known;
  }

  void look_at(const Bounded& next) {
    Ground& on = grounds_[next.subcluster];
    const Slots& slots = on.placements[next.placement];
    ++result_.placements;
    const bool hopeless = next.bound >= best_.worst_kept();
    const double limit = hopeless ? 0 : best_.limit(form(slots));
    if (next.bound >= limit) {
      ++result_.pruned;
      return;
    }
    Assignment assignment(on.request, on.functions, on.table, slots);
    const int64_t most = steps_allowed(request_.load.staleness);
    const Assigned assigned = assignment.best(limit, result_.steps < kPlacementsInFull * most ? most : kFewSteps);
    result_.steps += assignment.steps();
    result_.cut_short += assignment.cut_short();
    if (!assigned.found()) return;
    Found found{next.subcluster, slots, assigned.choices, assigned.seconds, {}};
    if (runs(found) && found.seconds < limit) best_.add(form(slots), std::move(found));
  }

  graph::Placement placement(const Found& found) const {
    return placement_of(subclusters_[found.subcluster], grounds_[found.subcluster].functions, found);
  }

  // Returns whether Request::excess lets a plan run, if need be with models that take turns, whose moves then add to
  // its seconds. Keeps the nearest miss for why().
  bool runs(Found& found) {
    if (!request_.excess) return true;
    const graph::Placement together = placement(found);
    Excess excess = request_.excess(together);
    if (excess.bytes <= 0) return true;
    if (request_.turns && request_.load.staleness == 0) {
      found.in_turn = models_on(excess.devices, together);
      const graph::Placement in_turn = placement(found);
      excess = request_.excess(in_turn);
      if (excess.bytes <= 0) {
        found.seconds += seconds_of_moves(cost_placement(request_, in_turn));
        return true;
      }
    }
    if (least_excess_.bytes == 0 || excess.bytes < least_excess_.bytes) least_excess_ = excess;
    return false;
  }

  static std::set<std::string> models_on(const std::set<int>& devices, const graph::Placement& placement) {
    std::set<std::string> models;
    for (const auto& [name, group] : placement.groups)
      if (std::any_of(group.devices.begin(), group.devices.end(), [&](int d) { return devices.contains(d); }))
        models.insert(group.models.begin(), group.models.end());
    return models;
  }

  Plan simulated(const Found& found) const {
    Plan plan = cost_placement(request_, placement(found));
    plan.estimated_seconds = found.seconds;
    set_times(plan, simulate_plan(request_, plan));
    return plan;
  }

  // Says why no plan was found; with several kinds, for all devices together and for those of each kind.
  std::string why() {
    if (least_excess_.bytes > 0) return least_excess_.why;
    if (!request_.form.empty())
      return fmt::format("no placement of the form {} fits; {} were tried", request_.form, result_.placements);
    std::string text;
    for (Ground& ground : grounds_) {
      const std::string reason = why_nothing_fits(ground.request, ground.functions, ground.table);
      if (grounds_.size() == 1) return reason;
      if (&ground != &grounds_.front() && ground.request.cluster.groups.size() > 1) continue;
      text += fmt::format("{}on {}: {}", text.empty() ? "" : "; ", cluster_text(ground.request.cluster), reason);
    }
    return text;
  }

  // Ranks plans by the simulator; of plans that are about as fast, the one with fewer groups comes first.
  void rank() {
    std::stable_sort(result_.plans.begin(), result_.plans.end(),
                     [](const Plan& a, const Plan& b) { return a.seconds < b.seconds; });
    result_.seconds = kNoPlanSeconds;
    for (const Plan& plan : result_.plans) result_.seconds = std::min(result_.seconds, plan.estimated_seconds);
    size_t simplest = 0;
    for (size_t i = 1; i < result_.plans.size() && result_.plans[i].seconds <= kAlike * result_.plans[0].seconds; ++i)
      if (result_.plans[i].placement.groups.size() < result_.plans[simplest].placement.groups.size()) simplest = i;
    const auto begin = result_.plans.begin();
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(simplest),
                begin + static_cast<std::ptrdiff_t>(std::min(simplest + 1, result_.plans.size())));
  }

  const Request& request_;
  const std::vector<Subcluster> subclusters_;
  std::deque<Ground> grounds_;  // by subcluster
  Best best_;
  std::vector<Bounded> order_;
  std::map<std::string, std::string> forms_;  // by form_text(): which models sit together
  Excess least_excess_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Request& request, double limit) {
  check(request);
  if (const size_t calls = request.graph.nodes.size(); calls > kMostCalls)
    throw base::InputError(base::expectation("plan", fmt::format("a graph of at most {} calls", kMostCalls),
                                             std::to_string(calls), "a placement, whose costs can be shown"));
  SearchResult found = Search(request, limit).run();
  if (!found.plans.empty() || request.cut_rows || request.whole || limit != kNoPlanSeconds) return found;
  Request cut = request;
  cut.cut_rows = true;
  SearchResult again = Search(cut, limit).run();
  again.cut_rows = true;
  return again.plans.empty() ? found : again;
}

}  // namespace collimate::plan

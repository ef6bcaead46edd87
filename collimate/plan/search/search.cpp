#include "collimate/plan/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "collimate/plan/form.h"
#include "collimate/plan/search/found.h"
#include "collimate/plan/search/nothing_fits.h"
#include "collimate/plan/search/placements.h"
#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::plan {
namespace {

constexpr double kNoPlanSeconds = std::numeric_limits<double>::infinity();
constexpr int64_t kMostSteps = 3000;  // of one placement

// The best plan of each form seen so far; `keep` of them matter.
class Best {
 public:
  Best(int keep, double limit) : keep_(static_cast<size_t>(std::max(keep, 1))), limit_(limit), worst_kept_(limit) {}

  // What a placement must beat to be reported.
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
  std::vector<Found> take() && {
    std::vector<Found> sorted;
    for (auto& [name, found] : found_) sorted.push_back(std::move(found));
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

// A subcluster with its placements and what functions cost on it.
struct Ground {
  explicit Ground(const Subcluster& on)
      : request(on.request),
        functions(request),
        table(request, functions, true),
        placements(all_placements(request, functions, table)) {}
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;

  const Request& request;
  const Functions functions;
  ChoiceTable table;
  const std::vector<Slots> placements;
};

// A placement of a subcluster, of which no plan is faster than the bound.
struct Bounded {
  double bound = 0;
  size_t subcluster = 0, placement = 0;
};

std::string form_of_slots(const graph::Graph& graph, const std::vector<std::string>& models, const Slots& slots) {
  std::vector<Seat> seats;
  for (const Slot& slot : slots)
    for (const int model : slot.models) {
      seats.push_back(seat_of(graph, models[static_cast<size_t>(model)]));
      for (int c = 0; cells_of(slots, slot) >> c != 0; ++c)
        if ((cells_of(slots, slot) >> c & 1U) != 0) seats.back().places.insert(c);
    }
  return form_of(seats, static_cast<int>(cells(slots).size()));
}

class Search {
 public:
  Search(const Request& request, double limit)
      : request_(request), subclusters_(subclusters(request)), best_(request.keep, limit) {
    for (const Subcluster& each : subclusters_) grounds_.emplace_back(each);
  }

  SearchResult run() {
    for (const Bounded& next : in_order_of_bounds()) look_at(next);
    std::vector<Found> found = std::move(best_).take();
    for (Found& each : found) {
      Ground& ground = grounds_[each.subcluster];
      refine(ground.request, ground.functions, ground.table, each);
    }
    for (const Found& each : found) result_.plans.push_back(simulated(each));
    rank();
    if (found.empty()) result_.why = why();
    return std::move(result_);
  }

 private:
  // The most promising first: a good plan early prunes the rest.
  std::vector<Bounded> in_order_of_bounds() {
    std::vector<Bounded> order;
    for (size_t s = 0; s < grounds_.size(); ++s) {
      Ground& on = grounds_[s];
      for (size_t i = 0; i < on.placements.size(); ++i)
        if (const Assignment made(on.request, on.functions, on.table, on.placements[i]); made.feasible())
          order.push_back({made.bound(), s, i});
    }
    std::stable_sort(order.begin(), order.end(), [](const Bounded& a, const Bounded& b) { return a.bound < b.bound; });
    return order;
  }

  const std::string& form(const Slots& slots) {
    const std::vector<std::string>& models = grounds_.front().functions.models;
    std::string& known = forms_[form_text(slots, models)];
    if (known.empty()) known = form_of_slots(request_.graph, models, slots);
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
    const Assigned assigned = assignment.best(limit, kMostSteps);
    result_.cut_short += assignment.cut_short();
    if (assigned.found()) best_.add(form(slots), {next.subcluster, slots, assigned.choices, assigned.seconds});
  }

  Plan simulated(const Found& found) const {
    const graph::Placement placement =
        placement_of(subclusters_[found.subcluster], grounds_[found.subcluster].functions, found);
    Plan plan = cost_placement(request_, placement);
    plan.estimated_seconds = found.seconds;
    set_times(plan, simulate_plan(request_, plan));
    return plan;
  }

  // Of several kinds: on all devices, and on those of each kind.
  std::string why() {
    std::string text;
    for (Ground& ground : grounds_) {
      const std::string reason = why_nothing_fits(ground.request, ground.functions, ground.table);
      if (grounds_.size() == 1) return reason;
      if (&ground != &grounds_.front() && ground.request.cluster.groups.size() > 1) continue;
      text += fmt::format("{}on {}: {}", text.empty() ? "" : "; ", cluster_text(ground.request.cluster), reason);
    }
    return text;
  }

  // By the simulator; of plans that are about as fast, the one with fewer groups.
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
  std::map<std::string, std::string> forms_;  // by who sits with whom
  SearchResult result_;
};

}  // namespace

SearchResult search(const Request& request, double limit) {
  check(request);
  return Search(request, limit).run();
}

}  // namespace collimate::plan

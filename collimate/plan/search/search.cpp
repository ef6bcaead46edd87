#include "collimate/plan/search/search.h"

#include <algorithm>
#include <limits>
#include <map>

#include "collimate/plan/form.h"
#include "collimate/plan/search/assignment.h"
#include "collimate/plan/search/search_parts.h"
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

class Search {
 public:
  Search(const Request& request, double limit)
      : request_(request), functions_(request), table_(request, functions_, true), best_(request.keep, limit) {}

  SearchResult run() {
    const std::vector<Slots> all = all_placements(request_, functions_, table_);
    for (const auto& [bound, index] : in_order_of_bounds(all)) look_at(all[index], bound);
    std::vector<Found> found = std::move(best_).take();
    for (Found& each : found) refine(request_, functions_, table_, each);
    for (const Found& each : found) result_.plans.push_back(simulated(each));
    rank();
    if (found.empty()) result_.why = why_nothing_fits(request_, functions_, table_);
    return std::move(result_);
  }

 private:
  // The most promising first: a good plan early prunes the rest.
  std::vector<std::pair<double, size_t>> in_order_of_bounds(const std::vector<Slots>& all) {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < all.size(); ++i)
      if (const Assignment assignment(request_, functions_, table_, all[i]); assignment.feasible())
        order.emplace_back(assignment.bound(), i);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return order;
  }

  const std::string& form(const Slots& slots) {
    std::string& known = forms_[form_text(slots, functions_.models)];
    if (known.empty()) known = form_of(request_.graph, functions_, slots);
    return known;
  }

  void look_at(const Slots& slots, double bound) {
    ++result_.placements;
    const bool hopeless = bound >= best_.worst_kept();
    const double limit = hopeless ? 0 : best_.limit(form(slots));
    if (bound >= limit) {
      ++result_.pruned;
      return;
    }
    Assignment assignment(request_, functions_, table_, slots);
    const Assigned assigned = assignment.best(limit, kMostSteps);
    result_.cut_short += assignment.cut_short();
    if (assigned.found()) best_.add(form(slots), {slots, assigned.choices, assigned.seconds});
  }

  Plan simulated(const Found& found) const {
    Plan plan = cost_placement(request_, placement_of(request_, functions_, found));
    plan.estimated_seconds = found.seconds;
    settle(request_, plan);
    return plan;
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
  Functions functions_;
  ChoiceTable table_;
  Best best_;
  std::map<std::string, std::string> forms_;  // by who sits with whom
  SearchResult result_;
};

// Every choice of every function, in turn.
class Exhaustive {
 public:
  Exhaustive(const Request& request, const Functions& functions, ChoiceTable& table, const Slots& slots)
      : functions_(functions),
        table_(table),
        slots_(slots),
        staleness_(request.load.staleness),
        clock_(functions, slots, request.load.staleness),
        usable_(usable_bytes(request.gpu(), request.constants)),
        chosen_(functions.size()),
        seconds_(functions.size()) {}

  double best(double limit) {
    limit_ = limit;
    descend(0);
    return limit_;
  }

 private:
  void descend(size_t f) {
    if (f == functions_.size()) return finish();
    const int model = functions_.at(f).model;
    for (const Choice& choice : table_.of(f, model < 0 ? 0 : slot_of(slots_, model).count).all) {
      chosen_[f] = &choice;
      seconds_[f] = choice.seconds;
      descend(f + 1);
    }
  }
  void finish() {
    for (const double bytes : peak_bytes(functions_, slots_, clock_, chosen_))
      if (bytes > usable_ * (1 + 1e-12)) return;
    const Clock clock(functions_, slots_, staleness_, joint_functions(functions_, slots_, chosen_));
    limit_ = std::min(limit_, clock.period(seconds_, transfer_times(table_, functions_, slots_, chosen_)));
  }

  const Functions& functions_;
  ChoiceTable& table_;
  const Slots& slots_;
  int64_t staleness_;
  Clock clock_;
  double usable_, limit_ = 0;
  std::vector<const Choice*> chosen_;
  std::vector<double> seconds_;
};

}  // namespace

SearchResult search(const Request& request, double limit) {
  check(request);
  return Search(request, limit).run();
}

SearchResult search_exhaustively(const Request& request) {
  const Functions functions(request);
  ChoiceTable table(request, functions, false);
  SearchResult result;
  result.seconds = kNoPlanSeconds;
  for (const Slots& slots : all_placements(request, functions, table)) {
    ++result.placements;
    result.seconds = Exhaustive(request, functions, table, slots).best(result.seconds);
  }
  return result;
}

}  // namespace collimate::plan

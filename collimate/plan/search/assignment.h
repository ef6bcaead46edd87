#pragma once

#include <vector>

#include "collimate/plan/layout/choices.h"
#include "collimate/plan/search/clock.h"

namespace collimate::plan {

// Assigned has a choice for every function of a placement, and the seconds of an iteration with these choices.
struct Assigned {
  std::vector<const Choice*> choices;  // by function
  double seconds = 0;                  // of an iteration
  bool found() const { return !choices.empty(); }
};

// Returns the devices of a function; none where it runs on the host.
DeviceRange range_of(const Functions& functions, const Slots& slots, size_t function);
// Returns the usable bytes of one device, by cell.
std::vector<double> usable_by_cell(const Request& request, const Slots& slots);

std::vector<double> transfer_times(ChoiceTable& table, const Functions& functions, const Slots& slots,
                                   const std::vector<const Choice*>& chosen);
// Returns the functions whose replicas lie across cells, as bits.
uint32_t joint_functions(const Functions& functions, const Slots& slots, const std::vector<const Choice*>& chosen);

// An Assignment finds the best choices for one placement, depth first: for trainers, then for functions that may read
// their weights, then for the rest, and for each the fastest first. A partial plan is bounded by the fastest choices of
// the other functions that still fit beside those chosen.
class Assignment {
 public:
  Assignment(const Request& request, const Functions& functions, ChoiceTable& table, const Slots& slots);

  bool feasible() const { return feasible_; }
  // Returns a lower bound on the seconds of all plans of this placement.
  double bound() const;
  // Returns the best plan that takes less than `limit` seconds, after looking at no more than `most_steps` partial
  // plans.
  Assigned best(double limit, int64_t most_steps);
  int64_t steps() const { return steps_; }                 // partial plans that the last search looked at
  bool cut_short() const { return steps_ > most_steps_; }  // whether the last search ended at most_steps

 private:
  struct Level {
    std::vector<double> resident, transient;  // by cell, for the choices made
    std::vector<size_t> first;                // by function: the fastest choice that may still fit
  };
  void order_functions();
  void sum_what_is_left();
  bool fits(const Level& level, size_t depth, size_t function, const Choice& choice) const;
  // Returns the least bytes that a function holds by itself, which are none where another may hold them for it.
  double least_own(size_t function) const {
    return beside_base_[function] || !ahead_[function].empty() ? 0 : lists_[function]->least_resident;
  }
  double own(size_t function, const Choice& choice) const;
  bool narrow(Level& level, size_t depth);
  void take(size_t function, const Choice& choice);
  void expect(size_t function, const Choice& choice);
  double level_bound(size_t depth) const;
  void descend(size_t depth);
  void finish();
  double period() const;

  const Request& request_;
  const Functions& functions_;
  ChoiceTable& table_;
  Slots slots_;
  Clock clock_;
  std::vector<double> usable_;  // by cell
  bool feasible_ = true;
  std::vector<const ChoiceList*> lists_;
  std::vector<bool> beside_base_;  // by function: on the devices of its base
  std::vector<size_t> order_;
  std::vector<std::vector<size_t>> ahead_;  // by function: those of its model that are ahead of it in order_
  size_t transfers_known_ = 0;              // depth from which the choices of all transfers are made
  std::vector<std::vector<double>> left_, left_transient_;  // by depth and cell: least bytes of what is not chosen
  std::vector<Level> levels_;
  Times times_;  // of the choice that is made, else the least that there may be
  std::vector<const Choice*> chosen_;
  double limit_ = 0;
  int64_t steps_ = 0, most_steps_ = 0;
  Assigned best_;
};

}  // namespace collimate::plan

#include "collimate/plan/search/assignment.h"

#include <algorithm>

#include "collimate/base/at.h"

namespace collimate::plan {
namespace {

bool same_devices(const Slot& a, const Slot& b) { return a.first == b.first && a.count == b.count; }

const Slot& slot_of_function(const Functions& functions, const Slots& slots, size_t function) {
  return slot_of(slots, functions.at(function).model);
}

bool beside_base(const Functions& functions, const Slots& slots, size_t function) {
  const int base = functions.at(function).base;
  return base >= 0 && same_devices(slot_of_function(functions, slots, function),
                                   slot_of_function(functions, slots, static_cast<size_t>(base)));
}

// Returns the ranks of one replica. For a function that trains the result does not matter, as it has a single replica.
int ranks_of(const Execution& how, int devices) {
  const graph::Layout& layout = how.layout;
  if (layout.zero >= 3) return devices;
  return std::max(layout.tp * layout.pp * layout.cp, layout.ep * layout.pp);
}

template <class F>
void for_cells(uint32_t cells, const F& visit) {
  for (size_t c = 0; cells >> c != 0; ++c)
    if ((cells >> c & 1U) != 0) visit(c);
}

}  // namespace

DeviceRange range_of(const Functions& functions, const Slots& slots, size_t function) {
  return functions.at(function).model < 0 ? DeviceRange{} : slot_of_function(functions, slots, function).range();
}

std::vector<double> usable_by_cell(const Request& request, const Slots& slots) {
  std::vector<double> usable;
  for (const DeviceRange& cell : cells(slots))
    usable.push_back(usable_bytes(request.cluster.gpu(request.cluster.kinds(cell)), request.constants));
  return usable;
}

std::vector<double> transfer_times(ChoiceTable& table, const Functions& functions, const Slots& slots,
                                   const std::vector<const Choice*>& chosen) {
  std::vector<double> seconds;
  for (const Transfer& transfer : functions.transfers) {
    const Slot &source = slot_of(slots, transfer.source), &target = slot_of(slots, transfer.destination);
    const auto trainer = static_cast<size_t>(transfer.trainer);
    double sum = 0;
    const auto how_of = [&](int f) -> const Execution& { return base::at(chosen, f)->how; };
    for (size_t i = 0; i < transfer.readers.size(); ++i) {
      if (has_copy_ahead(transfer.readers, i, how_of)) continue;
      const auto f = static_cast<size_t>(transfer.readers[i]);
      sum += transfer_seconds(table.job(trainer, source.range()), chosen[trainer]->how, table.job(f, target.range()),
                              chosen[f]->how, same_devices(source, target), table.constants());
    }
    seconds.push_back(sum);
  }
  return seconds;
}

uint32_t joint_functions(const Functions& functions, const Slots& slots, const std::vector<const Choice*>& chosen) {
  if (!nested(slots)) return 0;
  uint32_t joint = 0;
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions.at(f).model < 0 || slot_of_function(functions, slots, f).count != slots[0].count) continue;
    for (size_t slice = 1; slice < slots.size(); ++slice)
      if (slots[slice].first % ranks_of(chosen[f]->how, slots[0].count) != 0) joint |= 1U << f;
  }
  return joint;
}

Assignment::Assignment(const Request& request, const Functions& functions, ChoiceTable& table, const Slots& slots)
    : request_(request),
      functions_(functions),
      table_(table),
      slots_(slots),
      clock_(functions, slots, request.load.staleness),
      usable_(usable_by_cell(request, slots)) {
  for (size_t f = 0; f < functions.size(); ++f) {
    lists_.push_back(&table.of(f, range_of(functions, slots, f)));
    beside_base_.push_back(functions.at(f).model >= 0 && beside_base(functions, slots, f));
    feasible_ = feasible_ && !lists_.back()->empty();
    times_.seconds.push_back(lists_.back()->empty() ? 0 : lists_.back()->all.front().seconds);
    times_.finish.push_back(lists_.back()->least_finish);
  }
}

double Assignment::bound() const { return clock_.bound(times_); }

void Assignment::take(size_t f, const Choice& choice) {
  times_.seconds[f] = choice.seconds;
  times_.finish[f] = choice.finish;
}

// Expects that function f will take this choice or a slower one.
void Assignment::expect(size_t f, const Choice& choice) {
  times_.seconds[f] = choice.seconds;
  times_.finish[f] = lists_[f]->least_finish;
}

void Assignment::order_functions() {
  for (size_t f = 0; f < functions_.size(); ++f) order_.push_back(f);
  const auto rank = [&](size_t f) {
    if (functions_.at(f).work == Work::kTrain) return 0;
    for (const Transfer& transfer : functions_.transfers)
      if (transfer.destination == functions_.at(f).model) return 1;
    return functions_.at(f).base >= 0 ? 2 : 3;
  };
  std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : times_.seconds[a] > times_.seconds[b];
  });
  for (size_t i = 0; i < order_.size(); ++i)
    if (rank(order_[i]) <= 1) transfers_known_ = i + 1;
  ahead_.assign(functions_.size(), {});
  for (size_t i = 0; i < order_.size(); ++i)
    for (size_t before = 0; before < i && functions_.at(order_[i]).model >= 0; ++before)
      if (functions_.at(order_[before]).model == functions_.at(order_[i]).model)
        ahead_[order_[i]].push_back(order_[before]);
}

void Assignment::sum_what_is_left() {
  const std::vector<double> none(clock_.cell_count());
  left_.assign(order_.size() + 1, none);
  left_transient_.assign(order_.size() + 1, none);
  for (size_t depth = order_.size(); depth-- > 0;) {
    const size_t f = order_[depth];
    left_[depth] = left_[depth + 1];
    left_transient_[depth] = left_transient_[depth + 1];
    for_cells(clock_.cells(f), [&](size_t c) {
      left_[depth][c] += least_own(f);
      left_transient_[depth][c] = std::max(left_transient_[depth][c], lists_[f]->least_transient);
    });
  }
}

// Returns the bytes of the choice that no other one holds: the base's, or that of a function of the same model ahead in
// the order, which may hold them as long as it has no choice.
double Assignment::own(size_t f, const Choice& choice) const {
  if (beside_base_[f]) {
    const Choice* base = base::at(chosen_, functions_.at(f).base);
    if (base == nullptr || reads_in_place(*base, choice)) return 0;
  }
  double held = 0;
  for (const size_t ahead : ahead_[f]) {
    if (chosen_[ahead] == nullptr) return 0;
    if (reads_in_place(*chosen_[ahead], choice)) held = std::max(held, chosen_[ahead]->resident_bytes);
  }
  return std::max(0.0, choice.resident_bytes - held);
}

// Returns whether a choice for f, which has none yet, may fit beside the choices made and the least of the other
// functions.
bool Assignment::fits(const Level& level, size_t depth, size_t f, const Choice& choice) const {
  const double mine = own(f, choice), least = least_own(f);
  bool fit = true;
  for_cells(clock_.cells(f), [&](size_t c) {
    const double most = std::max({level.transient[c], left_transient_[depth][c], choice.transient_bytes});
    fit = fit && level.resident[c] + left_[depth][c] - least + mine + most <= usable_[c] * (1 + 1e-12);
  });
  return fit;
}

// Moves every function without a choice to its fastest one that may fit. Returns false when a function has none.
bool Assignment::narrow(Level& level, size_t depth) {
  for (size_t i = depth; i < order_.size(); ++i) {
    const size_t f = order_[i];
    const std::vector<Choice>& all = lists_[f]->all;
    size_t& at = level.first[f];
    while (at < all.size() && !fits(level, depth, f, all[at])) ++at;
    if (at == all.size()) return false;
    expect(f, all[at]);
  }
  return true;
}

double Assignment::level_bound(size_t depth) const {
  const double bound = clock_.bound(times_);
  if (depth < transfers_known_ || request_.load.staleness > 0) return bound;
  return std::max(bound, clock_.least_period(times_, transfer_times(table_, functions_, slots_, chosen_)));
}

double Assignment::period() const {
  const uint32_t joint = joint_functions(functions_, slots_, chosen_);
  const std::vector<double> transfers = transfer_times(table_, functions_, slots_, chosen_);
  if (joint == 0) return clock_.period(times_, transfers);
  return Clock(functions_, slots_, request_.load.staleness, joint).period(times_, transfers);
}

Assigned Assignment::best(double limit, int64_t most_steps) {
  if (order_.empty()) order_functions();
  sum_what_is_left();
  limit_ = limit;
  steps_ = 0;
  most_steps_ = most_steps;
  best_ = {};
  chosen_.assign(functions_.size(), nullptr);
  const std::vector<double> none(clock_.cell_count());
  levels_.assign(order_.size() + 1, {none, none, std::vector<size_t>(functions_.size())});
  descend(0);
  return best_;
}

void Assignment::descend(size_t depth) {
  Level& level = levels_[depth];
  if (++steps_ > most_steps_ || !narrow(level, depth)) return;
  if (level_bound(depth) >= limit_) return;
  if (depth == order_.size()) return finish();
  const size_t f = order_[depth];
  const std::vector<Choice>& all = lists_[f]->all;
  const Times fastest = times_;
  for (size_t at = level.first[f]; at < all.size() && steps_ <= most_steps_; ++at) {
    times_ = fastest;
    expect(f, all[at]);
    if (clock_.bound(times_) >= limit_) break;  // later ones are slower
    if (!fits(level, depth, f, all[at])) continue;
    take(f, all[at]);
    chosen_[f] = &all[at];
    Level& next = levels_[depth + 1];
    next = level;
    const double mine = own(f, all[at]);
    for_cells(clock_.cells(f), [&](size_t c) {
      next.resident[c] += mine;
      next.transient[c] = std::max(next.transient[c], all[at].transient_bytes);
    });
    descend(depth + 1);
    chosen_[f] = nullptr;
  }
  times_ = fastest;
}

void Assignment::finish() {
  const double seconds = period();
  if (seconds >= limit_) return;
  limit_ = seconds;
  best_ = {chosen_, seconds};
}

}  // namespace collimate::plan

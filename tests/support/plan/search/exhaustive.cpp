#include "tests/support/plan/search/exhaustive.h"

#include <algorithm>
#include <limits>

#include "collimate/base/at.h"
#include "collimate/plan/search/assignment.h"
#include "collimate/plan/search/placements.h"
#include "collimate/plan/search/subclusters.h"

namespace collimate::plan {
namespace {

// Every choice of every function, in turn.
class Exhaustive {
 public:
  Exhaustive(const Request& request, const Functions& functions, ChoiceTable& table, const Slots& slots)
      : functions_(functions),
        table_(table),
        slots_(slots),
        staleness_(request.load.staleness),
        clock_(functions, slots, request.load.staleness),
        usable_(usable_by_cell(request, slots)),
        chosen_(functions.size()),
        times_{std::vector<double>(functions.size()), std::vector<Finish>(functions.size())} {}

  double best(double limit) {
    limit_ = limit;
    descend(0);
    return limit_;
  }

 private:
  void descend(size_t f) {
    if (f == functions_.size()) return finish();
    for (const Choice& choice : table_.of(f, range_of(functions_, slots_, f)).all) {
      chosen_[f] = &choice;
      times_.seconds[f] = choice.seconds;
      times_.finish[f] = choice.finish;
      descend(f + 1);
    }
  }
  void finish() {
    const std::vector<double> peaks = peak_bytes();
    for (size_t c = 0; c < peaks.size(); ++c)
      if (peaks[c] > usable_[c] * (1 + 1e-12)) return;
    const Clock clock(functions_, slots_, staleness_, joint_functions(functions_, slots_, chosen_));
    limit_ = std::min(limit_, clock.period(times_, transfer_times(table_, functions_, slots_, chosen_)));
  }

  // The fullest device of each cell.
  std::vector<double> peak_bytes() const {
    std::vector<double> resident(clock_.cell_count()), transient(clock_.cell_count());
    for (size_t f = 0; f < functions_.size(); ++f)
      for (size_t c = 0; functions_.at(f).model >= 0 && c < resident.size(); ++c) {
        if ((clock_.cells(f) >> c & 1) == 0) continue;
        resident[c] += own_bytes(f);
        transient[c] = std::max(transient[c], chosen_[f]->transient_bytes);
      }
    for (size_t c = 0; c < resident.size(); ++c) resident[c] += transient[c];
    return resident;
  }
  // A function has no weights of its own where it reads those of its base in place.
  double own_bytes(size_t f) const {
    const int base = functions_.at(f).base;
    if (base < 0) return chosen_[f]->resident_bytes;
    const DeviceRange mine = range_of(functions_, slots_, f),
                      other = range_of(functions_, slots_, static_cast<size_t>(base));
    const bool beside = mine.first == other.first && mine.count == other.count;
    return beside && reads_in_place(*base::at(chosen_, base), *chosen_[f]) ? 0 : chosen_[f]->resident_bytes;
  }

  const Functions& functions_;
  ChoiceTable& table_;
  const Slots& slots_;
  int64_t staleness_;
  Clock clock_;
  std::vector<double> usable_;
  double limit_ = 0;
  std::vector<const Choice*> chosen_;
  Times times_;
};

}  // namespace

SearchResult search_exhaustively(const Request& request) {
  SearchResult result;
  result.seconds = std::numeric_limits<double>::infinity();
  for (const Subcluster& part : subclusters(request)) {
    const Functions functions(part.request);
    ChoiceTable table(part.request, functions, false);
    for (const Slots& slots : all_placements(part.request, functions, table)) {
      ++result.placements;
      result.seconds = Exhaustive(part.request, functions, table, slots).best(result.seconds);
    }
  }
  return result;
}

}  // namespace collimate::plan

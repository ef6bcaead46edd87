#include "collimate/plan/search/nothing_fits.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "collimate/base/at.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/search/placements.h"

namespace collimate::plan {
namespace {

// Together has all models on the same devices, with the choices that need least memory together.
class Together {
 public:
  Together(const Request& request, const Functions& functions, ChoiceTable& table, DeviceRange devices)
      : request_(request), functions_(functions), table_(table), devices_(devices), chosen_(functions.size()) {
    std::set<double> most_transient{0};
    for (size_t f = 0; f < functions.size(); ++f)
      if (on_device(f))
        for (const Choice& choice : choices(f)) most_transient.insert(choice.transient_bytes);
    for (const double transient : most_transient) choose(transient);
  }

  double bytes() const { return bytes_; }
  // Names the largest item: "weights of policy.generate 34.6 GB".
  std::string largest() const {
    MemoryItem largest{"", 0};
    std::string owner;
    for (size_t f = 0; f < functions_.size(); ++f) {
      if (!on_device(f)) continue;
      const Choice& choice = *chosen_[f];
      const MemoryBound bound = memory_of(table_.job(f, devices_), choice.how, request_.constants,
                                          choice.how.decoding_rows / request_.constants.kv_share);
      const std::vector<MemoryItem> none;
      const bool in_phase = choice.transient_bytes == transient_;
      const MemoryItem item =
          largest_item(in_place(f) ? none : bound.resident, in_phase ? bound.largest_phase() : none);
      if (item.bytes <= largest.bytes) continue;
      const graph::Node& node = request_.graph.node(functions_.at(f).node);
      largest = item;
      owner = node.model + "." + node.function;
    }
    return fmt::format("{} of {} {} GB", largest.what, owner, three_digits(largest.bytes / 1e9, 1));
  }

 private:
  bool on_device(size_t f) const { return functions_.at(f).model >= 0; }
  const std::vector<Choice>& choices(size_t f) const { return table_.of(f, devices_).all; }
  // Returns the function whose weights f may read: its base, or the first function of its model that has none; -1 for
  // that one itself.
  int base_of(size_t f) const {
    if (functions_.at(f).base >= 0) return functions_.at(f).base;
    for (size_t first = 0; first < f; ++first)
      if (functions_.at(first).model == functions_.at(f).model && functions_.at(first).base < 0)
        return static_cast<int>(first);
    return -1;
  }
  // Returns the bytes of the choice that neither its base nor a function of the same model ahead of it holds.
  double own(size_t f, const Choice& choice, const std::vector<const Choice*>& chosen) const {
    const int base = base_of(f);
    double held = base >= 0 && reads_in_place(*base::at(chosen, base), choice) ? choice.resident_bytes : 0;
    for (size_t ahead = 0; ahead < f; ++ahead) {
      if (functions_.at(ahead).model != functions_.at(f).model || base_of(ahead) == static_cast<int>(f)) continue;
      if (chosen[ahead] != nullptr && reads_in_place(*chosen[ahead], choice))
        held = std::max(held, chosen[ahead]->resident_bytes);
    }
    return std::max(0.0, choice.resident_bytes - held);
  }
  bool in_place(size_t f) const { return chosen_[f]->resident_bytes > 0 && own(f, *chosen_[f], chosen_) == 0; }

  // Takes the choices of least resident bytes among those of at most `most_transient` transient bytes, and keeps them
  // where they need less in all than those kept before.
  void choose(double most_transient) {
    std::vector<const Choice*> chosen(functions_.size());
    double resident = 0, transient = 0;
    for (size_t f = 0; f < functions_.size(); ++f)
      if (on_device(f) && base_of(f) < 0) resident += choose_with_readers(f, most_transient, chosen);
    if (resident == std::numeric_limits<double>::infinity()) return;
    for (const Choice* choice : chosen)
      if (choice != nullptr) transient = std::max(transient, choice->transient_bytes);
    if (resident + transient >= bytes_) return;
    bytes_ = resident + transient;
    transient_ = transient;
    chosen_ = std::move(chosen);
  }

  // Chooses for a function and those that may read its weights in place. Returns their resident bytes, or infinity
  // where one of them has no such choice.
  double choose_with_readers(size_t base, double most_transient, std::vector<const Choice*>& chosen) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Choice& choice : choices(base)) {
      if (choice.transient_bytes > most_transient) continue;
      std::vector<const Choice*> with = chosen;
      with[base] = &choice;
      double resident = choice.resident_bytes;
      for (size_t f = 0; f < functions_.size(); ++f)
        if (on_device(f) && base_of(f) == static_cast<int>(base)) resident += choose_reader(f, most_transient, with);
      if (resident >= least) continue;
      least = resident;
      chosen = std::move(with);
    }
    return least;
  }

  double choose_reader(size_t f, double most_transient, std::vector<const Choice*>& chosen) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Choice& choice : choices(f)) {
      const double bytes = own(f, choice, chosen);
      if (choice.transient_bytes > most_transient || bytes >= least) continue;
      least = bytes;
      chosen[f] = &choice;
    }
    return least;
  }

  const Request& request_;
  const Functions& functions_;
  ChoiceTable& table_;
  DeviceRange devices_;
  std::vector<const Choice*> chosen_;  // by function
  double bytes_ = std::numeric_limits<double>::infinity(), transient_ = 0;
};

// Says why the first function that does not fit by itself does not; "" where each does.
std::string why_alone(const Functions& functions, ChoiceTable& table, DeviceRange devices) {
  for (size_t f = 0; f < functions.size(); ++f)
    if (functions.at(f).model >= 0)
      if (std::string why = table.why(f, devices); !why.empty()) return why;
  return "";
}

}  // namespace

std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table) {
  for (const int count : device_counts(request, functions, table)) {
    const DeviceRange devices{0, count};
    if (!why_alone(functions, table, devices).empty()) continue;
    const Together together(request, functions, table, devices);
    const double usable = usable_bytes(request.cluster.gpu(request.cluster.kinds(devices)), request.constants);
    return fmt::format("each function fits, not all together: at their leanest on {} {} GB of {} usable, of which {}",
                       count == 1 ? "1 device" : fmt::format("{} devices", count),
                       three_digits(together.bytes() / 1e9, 1), three_digits(usable / 1e9, 1), together.largest());
  }
  return why_alone(functions, table, {0, request.cluster.devices()});
}

}  // namespace collimate::plan

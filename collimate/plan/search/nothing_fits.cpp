#include "collimate/plan/search/nothing_fits.h"

#include <fmt/format.h>

#include <algorithm>

#include "collimate/plan/digits.h"

namespace collimate::plan {
namespace {

const Choice& leanest(const ChoiceList& list) {
  return *std::min_element(list.all.begin(), list.all.end(), [](const Choice& a, const Choice& b) {
    return a.resident_bytes + a.transient_bytes < b.resident_bytes + b.transient_bytes;
  });
}

MemoryItem largest_of_choice(const Constants& constants, const Job& job, const Choice& choice) {
  const MemoryBound bound = memory_of(job, choice.how, constants, choice.how.decoding_rows / constants.kv_share);
  return largest_item(bound.resident, bound.largest_phase());
}

}  // namespace

std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table) {
  const DeviceRange all{0, request.cluster.devices()};
  double resident = 0, transient = 0;
  MemoryItem largest{"", 0};
  std::string owner;
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions.at(f).model < 0) continue;
    if (const std::string why = table.why(f, all); !why.empty()) return why;
    const ChoiceList& list = table.of(f, all);
    resident += functions.at(f).base < 0 ? list.least_resident : 0;
    transient = std::max(transient, list.least_transient);
    const MemoryItem item = largest_of_choice(request.constants, table.job(f, all), leanest(list));
    if (item.bytes <= largest.bytes) continue;
    largest = item;
    const graph::Node& node = request.graph.node(functions.at(f).node);
    owner = node.model + "." + node.function;
  }
  const double usable = usable_bytes(request.cluster.gpu(request.cluster.kinds(all)), request.constants);
  return fmt::format(
      "each function fits, not all together: at their leanest on all {} devices {} GB of {} usable, of which "
      "{} of {} {} GB",
      all.count, three_digits((resident + transient) / 1e9, 1), three_digits(usable / 1e9, 1), largest.what, owner,
      three_digits(largest.bytes / 1e9, 1));
}

}  // namespace collimate::plan

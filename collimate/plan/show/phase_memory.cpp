#include <fmt/format.h>

#include <algorithm>

#include "collimate/plan/digits.h"
#include "collimate/plan/show/columns.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {
namespace {

double sum_of(const std::vector<HeldItem>& items) {
  double bytes = 0;
  for (const HeldItem& item : items) bytes += item.bytes;
  return bytes;
}

// Writes items in GB, the largest first, "weights 13.5, gradients 6.7"; with `owners`, also the function of each.
std::string item_list(std::vector<HeldItem> items, bool owners) {
  std::stable_sort(items.begin(), items.end(), [](const HeldItem& a, const HeldItem& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const HeldItem& item : items) {
    if (item.bytes <= 0) continue;
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", item.what, owners ? " of " + item.owner : "",
                        three_digits(item.bytes / 1e9, 1));
  }
  return text;
}

}  // namespace

std::string phase_memory_text(const Request& request, const Plan& plan, int columns) {
  std::string text = "\n  memory by phase (GB on one device)\n";
  for (const DeviceMemory& memory : plan.memory) {
    if (memory.peak_bytes <= 0) continue;
    text += hanging("  ",
                    fmt::format("devices {}, {} usable", devices_text(request.cluster, memory.devices),
                                three_digits(memory.usable_bytes / 1e9, 1)),
                    columns);
    text += hanging(fmt::format("    {:<28} {:>8} {:8} : ", "stays", three_digits(memory.resident_bytes / 1e9, 1), ""),
                    item_list(memory.resident, true), columns);
    for (const Call& call : plan.calls) {
      if (std::find(call.devices.begin(), call.devices.end(), memory.devices.front()) == call.devices.end()) continue;
      std::vector<HeldItem> needs = call.used;
      if (call.swapped) needs.insert(needs.end(), call.held.begin(), call.held.end());
      const double bytes = sum_of(needs);
      text += hanging(fmt::format("    {:<28} {:>8} {:>8} : ", cut_to(call.model + "." + call.function, 28),
                                  fmt::format("+{}", three_digits(bytes / 1e9, 1)),
                                  three_digits((memory.resident_bytes + bytes) / 1e9, 1)),
                      item_list(needs, false), columns);
    }
  }
  return text;
}

}  // namespace collimate::plan

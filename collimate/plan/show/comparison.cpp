#include "collimate/plan/show/comparison.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collimate/plan/layout/fixed.h"

namespace collimate::plan {
namespace {

// The first layout that the request does not allow; "" when it allows all.
std::string forbidden_layout(const Request& request, const Plan& plan) {
  for (const Call& call : plan.calls) {
    if (call.devices.empty()) continue;
    const std::string name = call.model + "." + call.function;
    const graph::Layout& l = call.how.layout;
    if (request.whole && (l.tp * l.pp * l.cp * l.ep > 1 || l.zero > 0))
      return fmt::format("{} has {}, and layouts are of dp alone", name, layout_text(call.how));
    const auto fixed = request.fixed.find(name);
    if (fixed == request.fixed.end()) continue;
    if (fixed_text(fixed->second, call.how) != fixed_text(fixed->second))
      return fmt::format("{} has {}, and {} are fixed", name, fixed_text(fixed->second, call.how),
                         fixed_text(fixed->second));
  }
  return "";
}

// Against a plan that is allowed and not slower.
std::string simplicity(const Plan& chosen, const Plan& other) {
  if (chosen.placement == other.placement) return "it is the choice itself";
  if (other.seconds * kAlike < chosen.seconds)
    return "nothing speaks against it: the search does not look at all placements, and did not find it";
  if (other.placement.staleness > chosen.placement.staleness) return "it is as fast within 0.5 %, with more staleness";
  if (other.placement.groups.size() > chosen.placement.groups.size())
    return "it is as fast within 0.5 %, with more groups";
  return "nothing speaks against it: it is as fast within 0.5 %";
}

std::string call_rows(const Plan& chosen, const Plan& other, const std::string& name) {
  std::string text = calls_heading();
  for (size_t i = 0; i < chosen.calls.size(); ++i) {
    const Call &a = chosen.calls[i], &b = other.calls[i];
    if (a.devices.empty()) continue;
    text += fmt::format("  {}.{} on devices {}; of {} on {}\n", a.model, a.function, devices_text(a.devices), name,
                        devices_text(b.devices));
    text += call_row("    choice", a) + call_row("    " + name, b);
  }
  for (size_t i = 0; i < chosen.transfer_seconds.size(); ++i)
    text += fmt::format("  new weights\n  {:<26} {:>8.2f}\n  {:<26} {:>8.2f}\n", "    choice",
                        chosen.transfer_seconds[i], "    " + name, other.transfer_seconds[i]);
  return text;
}

}  // namespace

std::string objection(const Request& request, const Plan& chosen, const Plan& other) {
  if (const std::string misfit = misfit_of(request, other); !misfit.empty()) return "it does not fit: " + misfit;
  if (other.placement.staleness > request.load.staleness)
    return fmt::format("it lets a rollout run {} iterations ahead, and at most {} are allowed (--staleness)",
                       other.placement.staleness, request.load.staleness);
  if (const std::string layout = forbidden_layout(request, other); !layout.empty()) return layout;
  if (other.seconds > chosen.seconds * kAlike) return loss_text(chosen, other);
  return simplicity(chosen, other);
}

std::string comparison_text(const Request& request, const Plan& chosen, const Plan& other, const std::string& name) {
  std::string text = fmt::format("\nwhy not {}: {}: {}{}\n  {:.2f} s an iteration against {:.2f} ({:+.1f} %): {}\n\n",
                                 name, other.form, other.parts, staleness_text(other), other.seconds, chosen.seconds,
                                 100 * (other.seconds / chosen.seconds - 1), objection(request, chosen, other));
  text += picture_text(other, timeline_of(request, other, simulate_plan(request, other)));
  text += call_rows(chosen, other, name);
  text += fmt::format("{}  of {}:{}", memory_text(request, chosen), name, memory_text(request, other));
  return text;
}

nlohmann::ordered_json comparison_json(const Request& request, const Plan& chosen, const Plan& other,
                                       const std::string& name) {
  return {{"name", name},
          {"slower_by", other.seconds / chosen.seconds - 1},
          {"objection", objection(request, chosen, other)},
          {"misfit", misfit_of(request, other)},
          {"plan", plan_json(request, other, timeline_of(request, other, simulate_plan(request, other)))}};
}

}  // namespace collimate::plan

#include "collimate/plan/show/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/graph/whole_layout.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/layout/fixed.h"
#include "collimate/plan/show/columns.h"

namespace collimate::plan {
namespace {

// Limits the rows at once to those of a replica, as more mean the same.
Execution within_rows(Execution how, double rows) {
  how.decoding_rows = std::min(how.decoding_rows, rows);
  how.layout.micro_batch = std::min(how.layout.micro_batch, static_cast<int64_t>(rows));
  return how;
}

// Says what the request has against one call of a plan, whose replica has `rows` rows; "" when nothing.
std::string forbidden_call(const Request& request, const Call& call, double rows) {
  const std::string name = call.model + "." + call.function;
  if (request.whole && !graph::holds_all_weights(call.how.layout))
    return fmt::format("{} has {}, and every rank holds all of its model", name, layout_text(call.how));
  if (request.whole && call.swapped && !request.turns)
    return fmt::format("{} is swapped, and models take turns only where run.memory_budget has no room for all of them",
                       call.model);
  const Execution how = within_rows(call.how, rows);
  const auto most = static_cast<int64_t>(rows);
  const bool generates = request.graph.spec(call.node).kind == graph::Kind::kGenerate;
  if (!request.whole && !generates && request.micro_batch > 0 &&
      how.layout.micro_batch != std::min(request.micro_batch, most))
    return fmt::format("{} has micro_batch {}, and --micro-batch is {}", name, call.how.layout.micro_batch,
                       request.micro_batch);
  const auto found = request.fixed.find(name);
  if (found == request.fixed.end()) return "";
  FixedLayout fixed = found->second;
  fixed.micro_batch = std::min(fixed.micro_batch, most);
  if (fixed_text(fixed, how) == fixed_text(fixed)) return "";
  return fmt::format("{} has {}, and {} are fixed", name, fixed_text(found->second, call.how),
                     fixed_text(found->second));
}

// Says why the first layout that the request does not allow is not allowed; "" when it allows all.
std::string forbidden_layout(const Request& request, const Plan& plan) {
  const Functions functions(request);
  for (size_t f = 0; f < plan.calls.size(); ++f) {
    const Call& call = plan.calls[f];
    if (call.devices.empty()) continue;
    const Job job =
        job_of(request, functions, f, request.cluster.kinds(call.devices), static_cast<int>(call.devices.size()));
    if (std::string why = forbidden_call(request, call, replica_rows(job, call.how)); !why.empty()) return why;
  }
  return "";
}

// Says what still speaks against a plan that is allowed and not slower.
std::string simplicity(const Plan& chosen, const Plan& other) {
  if (chosen.placement == other.placement) return "it is the choice itself";
  if (other.seconds * kAlike < chosen.seconds)
    return "nothing speaks against it: the search does not look at all placements, and did not find it";
  if (other.placement.staleness > chosen.placement.staleness) return "it is as fast within 0.5 %, with more staleness";
  if (other.placement.groups.size() > chosen.placement.groups.size())
    return "it is as fast within 0.5 %, with more groups";
  return "nothing speaks against it: it is as fast within 0.5 %";
}

std::string call_rows(const Plan& chosen, const Plan& other, const std::string& name, int columns) {
  std::string text = calls_heading(columns);
  for (size_t i = 0; i < chosen.calls.size(); ++i) {
    const Call &a = chosen.calls[i], &b = other.calls[i];
    if (a.devices.empty()) continue;
    text += hanging("  ",
                    fmt::format("{}.{} on devices {}; of {} on {}", a.model, a.function, devices_text(a.devices), name,
                                devices_text(b.devices)),
                    columns);
    text += call_row("    choice", a, columns) + call_row("    " + name, b, columns);
  }
  for (size_t i = 0; i < chosen.transfer_seconds.size(); ++i)
    text += fmt::format("  new weights\n  {:<26} {:>8.2f}\n  {:<26} {:>8.2f}\n", "    choice",
                        chosen.transfer_seconds[i], cut_to("    " + name, 26), other.transfer_seconds[i]);
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

std::string comparison_text(const Request& request, const Plan& chosen, const NamedPlan& named, int columns) {
  const Plan& other = named.plan;
  std::string text = "\n";
  text += hanging("", fmt::format("why not {}: {}: {}{}", named.name, other.form, other.parts, staleness_text(other)),
                  columns);
  text += hanging("  ",
                  fmt::format("{} s an iteration against {} ({:+.1f} %): {}", three_digits(other.seconds, 2),
                              three_digits(chosen.seconds, 2), 100 * (other.seconds / chosen.seconds - 1),
                              objection(request, chosen, other)),
                  columns) +
          "\n";
  text += picture_text(other, timeline_of(request, other, named.simulated), columns);
  text += call_rows(chosen, other, named.name, columns);
  return text + fmt::format("{}  of {}:{}", memory_text(request, chosen, columns), named.name,
                            memory_text(request, other, columns));
}

nlohmann::ordered_json comparison_json(const Request& request, const Plan& chosen, const NamedPlan& other) {
  return {{"name", other.name},
          {"slower_by", other.plan.seconds / chosen.seconds - 1},
          {"objection", objection(request, chosen, other.plan)},
          {"misfit", misfit_of(request, other.plan)},
          {"plan", plan_json(request, other.plan, timeline_of(request, other.plan, other.simulated))}};
}

}  // namespace collimate::plan

#include "collimate/plan/show/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collimate/base/at.h"
#include "collimate/plan/digits.h"

namespace collimate::plan {
namespace {

constexpr int kTimeWidth = 56, kMemoryWidth = 32;
constexpr size_t kLeastLabelWidth = 11;

char letter(size_t call) { return static_cast<char>((call < 26 ? 'A' : 'a' - 26) + call); }

// Where the period goes on one lane: a letter a function, '>' new weights and loads, '.' idle.
std::string lane_picture(const Lane& lane, double seconds) {
  std::string drawn(static_cast<size_t>(kTimeWidth), '.');
  for (const Block& block : lane.blocks) {
    const int begin = static_cast<int>(block.begin_seconds / seconds * kTimeWidth + 0.5);
    const int end = static_cast<int>(block.end_seconds / seconds * kTimeWidth + 0.5);
    for (int i = begin; i < std::min(std::max(end, begin + (block.call >= 0 ? 1 : 0)), kTimeWidth); ++i)
      base::at(drawn, i) = block.call < 0 ? '>' : letter(static_cast<size_t>(block.call));
  }
  return drawn;
}

// Idle seconds of a lane by what ended them, the longest first.
std::string idle_text(const Lane& lane, double seconds) {
  if (lane.idle_seconds <= 0) return "";
  std::map<std::string, double> causes;
  for (const Bubble& bubble : lane.bubbles) causes[bubble.cause] += bubble.end_seconds - bubble.begin_seconds;
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [cause, sum] : causes) sorted.emplace_back(-sum, cause);
  std::sort(sorted.begin(), sorted.end());
  std::string text = fmt::format("  idle {:.0f} %: ", 100 * lane.idle_seconds / seconds);
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 3); ++i)
    text += fmt::format("{}{} s for {}", i == 0 ? "" : ", ", three_digits(-sorted[i].first, 2), sorted[i].second);
  return text;
}

std::string runner_ups(const SearchResult& result) {
  const Plan& best = result.plans.at(0);
  std::string text = result.plans.size() > 1 ? "\n  runner-ups\n" : "";
  for (size_t i = 1; i < result.plans.size(); ++i)
    text += fmt::format("  {:+6.1f} %  {}: {}{}\n            {}\n", 100 * (result.plans[i].seconds / best.seconds - 1),
                        result.plans[i].form, result.plans[i].parts, staleness_text(result.plans[i]),
                        loss_text(best, result.plans[i]));
  return text;
}

std::string calls_text(const Plan& plan) {
  std::string text = calls_heading();
  for (const Call& call : plan.calls)
    if (!call.devices.empty()) text += call_row(call.model + "." + call.function, call);
  for (const double seconds : plan.transfer_seconds)
    text += fmt::format("  {:<26} {:>8}\n", "new weights", three_digits(seconds, 2));
  return text;
}

// "######----    ": what stays, and what the largest phase needs beside it.
std::string memory_bar(const DeviceMemory& memory) {
  const auto columns = [&](double bytes) {
    return std::clamp(static_cast<int>(bytes / memory.usable_bytes * kMemoryWidth + 0.5), 0, kMemoryWidth);
  };
  const int held = columns(memory.resident_bytes), peak = std::max(held, columns(memory.peak_bytes));
  return std::string(static_cast<size_t>(held), '#') + std::string(static_cast<size_t>(peak - held), '-');
}

// The three largest.
std::string largest_items(const DeviceMemory& memory) {
  std::vector<HeldItem> items = memory.resident;
  items.insert(items.end(), memory.peak.begin(), memory.peak.end());
  std::stable_sort(items.begin(), items.end(), [](const HeldItem& a, const HeldItem& b) { return a.bytes > b.bytes; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(items.size(), 3); ++i)
    text += fmt::format("{} {} of {} {}", i == 0 ? "" : ",", items[i].what, items[i].owner,
                        three_digits(items[i].bytes / 1e9, 1));
  return text;
}

// A line for every staleness that was tried, the one of the plan marked.
std::string synchrony_text(const SearchResult& result) {
  if (result.synchrony.empty()) return "";
  std::string text = "\n  staleness, the seconds and the best plan of each\n";
  for (const Synchrony& tried : result.synchrony) {
    text += fmt::format("  {} {:>3}  ", tried.staleness == result.plans.at(0).placement.staleness ? "->" : "  ",
                        tried.staleness);
    text += std::isinf(tried.seconds)
                ? "nothing that gains 0.5 % over less\n"
                : fmt::format("{:>8}  {}: {}\n", three_digits(tried.seconds, 2), tried.form, tried.parts);
  }
  return text;
}

}  // namespace

RunCost run_cost(const Request& request, double iteration_seconds, int64_t iterations) {
  const double hours = iteration_seconds * static_cast<double>(iterations) / 3600;
  RunCost cost{hours, hours * request.cluster.devices(), 0, {}};
  for (const NodeGroup& group : request.cluster.groups) {
    const double device_hours = hours * group.devices(), dollars = device_hours * group.gpu.dollars_per_hour;
    cost.kinds.push_back({group.gpu, group.devices(), device_hours, dollars});
    cost.dollars += dollars;
  }
  return cost;
}

std::string picture_text(const Plan& plan, const Timeline& timeline) {
  size_t width = kLeastLabelWidth;
  for (const Lane& lane : timeline.lanes) width = std::max(width, lane.label.size());
  std::string text = fmt::format("  {:>{}}  |{:<{}}|\n", "devices", width,
                                 fmt::format("one period: {} s", three_digits(timeline.seconds, 2)), kTimeWidth);
  for (const Lane& lane : timeline.lanes)
    text += fmt::format("  {:>{}}  |{}|{}\n", lane.label, width, lane_picture(lane, timeline.seconds),
                        idle_text(lane, timeline.seconds));
  text += "  ";
  for (size_t i = 0; i < plan.calls.size(); ++i)
    if (!plan.calls[i].devices.empty())
      text += fmt::format("{} {}.{}  ", letter(i), plan.calls[i].model, plan.calls[i].function);
  return text + "> new weights, loads\n";
}

std::string calls_heading() {
  return fmt::format("\n  {:<26} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {}\n", "function (seconds)", "total",
                     "compute", "decode", "tensor", "bubble", "update", "fixed", "layout");
}

std::string call_row(const std::string& label, const Call& call) {
  const PhaseTime& t = call.time;
  std::string text = fmt::format("  {:<26}", label);
  for (const double seconds :
       {call.seconds, t.compute + t.prefill, t.memory + t.latency, t.tensor, t.bubble, t.data + t.optimizer, t.fixed})
    text += fmt::format(" {:>8}", three_digits(seconds, 2));
  return text + fmt::format("  {}{}\n", layout_text(call.how), call.swapped ? " · swapped" : "");
}

std::string memory_text(const Request& request, const Plan& plan) {
  const bool several = request.cluster.groups.size() > 1;
  size_t width = kLeastLabelWidth;
  for (const DeviceMemory& memory : plan.memory)
    width = std::max(width, devices_text(request.cluster, memory.devices).size());
  const std::string heading =
      several ? "memory: all that is usable"
              : fmt::format("memory: {} GB usable", three_digits(plan.memory.at(0).usable_bytes / 1e9, 1));
  std::string text = fmt::format("\n  {:>{}}  |{:<{}}|  # stays, - largest phase beside it\n", "devices", width,
                                 heading, kMemoryWidth);
  for (const DeviceMemory& memory : plan.memory) {
    if (memory.peak_bytes <= 0) continue;
    const std::string usable = several ? fmt::format(" of {}", three_digits(memory.usable_bytes / 1e9, 1)) : "";
    text += fmt::format("  {:>{}}  |{:<{}}|  {}{} GB:{}\n", devices_text(request.cluster, memory.devices), width,
                        memory_bar(memory), kMemoryWidth, three_digits(memory.peak_bytes / 1e9, 1), usable,
                        largest_items(memory));
  }
  if (const std::vector<int> unused = unused_devices(request, plan); !unused.empty())
    text += fmt::format("  {:>{}}  |{:<{}}|  not used by this plan{}\n", devices_text(unused), width, "", kMemoryWidth,
                        several ? ": " + count_text(request.cluster, unused) : "");
  return text;
}

std::string staleness_text(const Plan& plan) {
  return plan.placement.staleness == 0 ? "" : fmt::format(", staleness {}", plan.placement.staleness);
}

std::string cost_text(const Request& request, double iteration_seconds, int64_t iterations) {
  const RunCost cost = run_cost(request, iteration_seconds, iterations);
  std::string text = fmt::format("{} iterations: {} h, {} {}-hours, ${}", iterations, three_digits(cost.hours, 1),
                                 three_digits(cost.device_hours, 1), request.device_kind() == "cpu" ? "device" : "GPU",
                                 three_digits(cost.dollars, 2));
  const bool several = cost.kinds.size() > 1;
  for (const KindCost& kind : cost.kinds) {
    if (several)
      text += fmt::format("{} {} on {} for ${}", &kind == &cost.kinds.front() ? ":" : ",",
                          three_digits(kind.device_hours, 1), kind.gpu.name, three_digits(kind.dollars, 2));
    text += fmt::format(" at ${:.2f} an hour{}", kind.gpu.dollars_per_hour,
                        kind.gpu.price_given ? "" : " (assumed: --price)");
  }
  return text;
}

std::string layout_text(const Execution& how) {
  const graph::Layout& l = how.layout;
  std::string text = fmt::format("tp {} · pp {} · dp {}", l.tp, l.pp, l.dp);
  if (l.ep > 1) text += fmt::format(" · ep {}", l.ep);
  if (l.zero > 0) text += fmt::format(" · zero {}", l.zero);
  if (l.micro_batch > 0) text += fmt::format(" · rows {}", l.micro_batch);
  if (how.decoding_rows > 0) text += fmt::format(" · {:.0f} rows at once", how.decoding_rows);
  if (l.recompute) text += " · recompute";
  if (l.offload) text += " · optimizer on host";
  return text;
}

// The whole cluster's time is the functions' device-seconds and idle ones: the largest difference is the reason.
std::string loss_text(const Plan& faster, const Plan& slower) {
  const double devices = std::max(slower.placement.devices, faster.placement.devices);
  double idle_more = slower.seconds - faster.seconds, most = 0, idle[2] = {slower.seconds, faster.seconds};
  size_t worst = 0;
  for (size_t i = 0; i < slower.calls.size(); ++i) {
    const Call &a = slower.calls[i], &b = faster.calls[i];
    const double mine = a.seconds * static_cast<double>(a.devices.size()) / devices;
    const double other = b.seconds * static_cast<double>(b.devices.size()) / devices;
    idle_more -= mine - other;
    idle[0] -= mine;
    idle[1] -= other;
    if (mine - other <= most) continue;
    most = mine - other;
    worst = i;
  }
  if (idle_more >= most)
    return fmt::format("devices wait or move weights {:.0f} % of the time against {:.0f} % (+{} s)",
                       100 * idle[0] / slower.seconds, 100 * idle[1] / faster.seconds, three_digits(idle_more, 2));
  const Call &a = slower.calls[worst], &b = faster.calls[worst];
  return fmt::format("{}.{} takes {} s on {} devices against {} s on {} (+{} s of all devices)", a.model, a.function,
                     three_digits(a.seconds, 2), a.devices.size(), three_digits(b.seconds, 2), b.devices.size(),
                     three_digits(most, 2));
}

std::string plan_text(const Request& request, const Plan& plan, const Timeline& timeline) {
  return picture_text(plan, timeline) + calls_text(plan) + memory_text(request, plan);
}

std::string heading_text(const Request& request, const Plan& plan, int64_t iterations) {
  return fmt::format("{}: {} on {}{}\n{} s an iteration (simulated), {:.0f} tokens/s; {}\n\n", plan.form, plan.parts,
                     cluster_text(request.cluster), staleness_text(plan), three_digits(plan.seconds, 2),
                     request.load.tokens() / plan.seconds, cost_text(request, plan.seconds, iterations));
}

std::string search_text(const Request& request, const SearchResult& result, int64_t iterations) {
  const Plan& best = result.plans.at(0);
  std::string text = heading_text(request, best, iterations);
  text += plan_text(request, best, timeline_of(request, best, simulate_plan(request, best)));
  text += runner_ups(result) + synchrony_text(result);
  text += fmt::format("\n  {} placements, {} pruned by their bound, {} not searched to the end\n", result.placements,
                      result.pruned, result.cut_short);
  return text;
}

}  // namespace collimate::plan

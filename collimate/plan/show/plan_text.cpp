#include "collimate/plan/show/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collimate/base/at.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/columns.h"
#include "collimate/plan/show/comparison.h"

namespace collimate::plan {
namespace {

constexpr int kMemoryWidth = 32, kNameWidth = 26;
constexpr int kLeastLabelWidth = 11, kNumbers = 7;

// Returns the width of the picture of a period. The text beside it tells of idle time.
int time_width(int columns) { return std::clamp(columns / 2, 40, 90); }

// These return the widths of columns of seconds and of names of functions, both smaller where lines are short.
int number_width(int columns) { return columns < 100 ? 7 : 8; }
int name_width(int columns) { return std::min(kNameWidth, columns - 2 - kNumbers * (number_width(columns) + 1)); }

// Returns the width of the labels of devices: that of the longest, or what a picture of `beside` characters leaves.
int label_width(int longest, int beside, int columns) {
  return std::clamp(longest, kLeastLabelWidth, std::max(kLeastLabelWidth, columns - beside - 6));
}

// Returns the letter of a call. All calls for which the alphabet has none share a sign.
char letter(size_t call) { return call < 52 ? static_cast<char>((call < 26 ? 'A' : 'a' - 26) + call) : '*'; }

// Draws the period of one lane: a letter for each function, '>' for new weights and loads, '.' for idle time.
std::string lane_picture(const Lane& lane, double seconds, int width) {
  std::string drawn(static_cast<size_t>(width), '.');
  for (const Block& block : lane.blocks) {
    const int begin = static_cast<int>(block.begin_seconds / seconds * width + 0.5);
    const int end = static_cast<int>(block.end_seconds / seconds * width + 0.5);
    for (int i = begin; i < std::min(std::max(end, begin + (block.call >= 0 ? 1 : 0)), width); ++i)
      base::at(drawn, i) = block.call < 0 ? '>' : letter(static_cast<size_t>(block.call));
  }
  return drawn;
}

// Writes the idle seconds of a lane by what it waited for, the longest first, at most three.
std::string idle_text(const Lane& lane, double seconds) {
  if (lane.idle_seconds <= 0) return "";
  std::map<std::string, double> causes;
  for (const Bubble& bubble : lane.bubbles) causes[bubble.cause] += bubble.end_seconds - bubble.begin_seconds;
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [cause, sum] : causes) sorted.emplace_back(-sum, cause);
  std::sort(sorted.begin(), sorted.end());
  std::string text = fmt::format("idle {:.0f} %: waits ", 100 * lane.idle_seconds / seconds);
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 3); ++i)
    text += fmt::format("{}{} s for {}", i == 0 ? "" : ", ", three_digits(-sorted[i].first, 2), sorted[i].second);
  return text;
}

std::string runner_ups(const Request& request, const SearchResult& result, int columns) {
  const Plan& best = result.plans.at(0);
  std::string text = result.plans.size() > 1 ? "\n  runner-ups\n" : "";
  for (size_t i = 1; i < result.plans.size(); ++i) {
    const Plan& other = result.plans[i];
    text += hanging(fmt::format("  {:+6.1f} %  ", 100 * (other.seconds / best.seconds - 1)),
                    fmt::format("{}: {}{}", other.form, other.parts, staleness_text(other)), columns);
    text += hanging(std::string(12, ' '), objection(request, best, other), columns);
  }
  return text;
}

std::string calls_text(const Plan& plan, int columns) {
  std::string text = calls_heading(columns);
  for (const Call& call : plan.calls)
    if (!call.devices.empty()) text += call_row(call.model + "." + call.function, call, columns);
  for (const double seconds : plan.transfer_seconds)
    text += fmt::format("  {:<{}} {:>{}}\n", "new weights", name_width(columns), three_digits(seconds, 2),
                        number_width(columns));
  return text;
}

// Draws "######----    ": '#' is what stays, '-' what the largest phase needs beside it.
std::string memory_bar(const DeviceMemory& memory) {
  const auto columns = [&](double bytes) {
    return std::clamp(static_cast<int>(bytes / memory.usable_bytes * kMemoryWidth + 0.5), 0, kMemoryWidth);
  };
  const int held = columns(memory.resident_bytes), peak = std::max(held, columns(memory.peak_bytes));
  return std::string(static_cast<size_t>(held), '#') + std::string(static_cast<size_t>(peak - held), '-');
}

// Names the three largest items.
std::string largest_items(const DeviceMemory& memory) {
  std::vector<HeldItem> items = memory.resident;
  items.insert(items.end(), memory.peak.begin(), memory.peak.end());
  std::stable_sort(items.begin(), items.end(), [](const HeldItem& a, const HeldItem& b) { return a.bytes > b.bytes; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(items.size(), 3); ++i)
    text += fmt::format("{}{} of {} {}", i == 0 ? "" : ", ", items[i].what, items[i].owner,
                        three_digits(items[i].bytes / 1e9, 1));
  return text;
}

// Writes a line for every staleness that was tried, and marks that of the best plan.
std::string synchrony_text(const SearchResult& result, int columns) {
  if (result.synchrony.empty()) return "";
  std::string text = "\n  staleness, the seconds and the best plan of each\n";
  for (const Synchrony& tried : result.synchrony) {
    const std::string head = fmt::format(
        "  {} {:>3}  ", tried.staleness == result.plans.at(0).placement.staleness ? "->" : "  ", tried.staleness);
    text += std::isinf(tried.seconds) ? head + "no plan that gains 0.5 % over less staleness\n"
                                      : hanging(head + fmt::format("{:>8}  ", three_digits(tried.seconds, 2)),
                                                fmt::format("{}: {}", tried.form, tried.parts), columns);
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

std::string picture_text(const Plan& plan, const Timeline& timeline, int columns) {
  int longest = 0;
  for (const Lane& lane : timeline.lanes) longest = std::max(longest, width_of(lane.label));
  const int picture = time_width(columns), width = label_width(longest, picture, columns);
  std::string text = fmt::format("  {:>{}}  |{:<{}}|\n", "devices", width,
                                 fmt::format("one iteration: {} s", three_digits(timeline.seconds, 2)), picture);
  for (const Lane& lane : timeline.lanes)
    text += hanging(fmt::format("  {:>{}}  |{}|  ", cut_to(lane.label, width), width,
                                lane_picture(lane, timeline.seconds, picture)),
                    idle_text(lane, timeline.seconds), columns);
  std::vector<std::string> letters;
  for (size_t i = 0; i < plan.calls.size(); ++i)
    if (!plan.calls[i].devices.empty())
      letters.push_back(fmt::format("{} {}.{}", letter(i), plan.calls[i].model, plan.calls[i].function));
  letters.emplace_back("> new weights, loads");
  letters.emplace_back(". idle");
  return text + hanging("  ", letters, columns, "  ");
}

std::string calls_heading(int columns) {
  std::string text = fmt::format("\n  {:<{}}", cut_to("function (seconds)", name_width(columns)), name_width(columns));
  for (const char* name : {"total", "compute", "decode", "tensor", "bubble", "update", "fixed"})
    text += fmt::format(" {:>{}}", name, number_width(columns));
  return hanging(text + "  ", std::string("layout"), columns);
}

std::string call_row(const std::string& label, const Call& call, int columns) {
  const PhaseTime& t = call.time;
  std::string text = fmt::format("  {:<{}}", cut_to(label, name_width(columns)), name_width(columns));
  for (const double seconds :
       {call.seconds, t.compute + t.prefill, t.memory + t.latency, t.tensor, t.bubble, t.data + t.optimizer, t.fixed})
    text += fmt::format(" {:>{}}", three_digits(seconds, 2), number_width(columns));
  return hanging(text + "  ", layout_text(call.how) + (call.swapped ? " · swapped" : ""), columns);
}

std::string memory_text(const Request& request, const Plan& plan, int columns) {
  const bool several = request.cluster.groups.size() > 1;
  int longest = 0;
  for (const DeviceMemory& memory : plan.memory)
    longest = std::max(longest, width_of(devices_text(request.cluster, memory.devices)));
  const int width = label_width(longest, kMemoryWidth, columns);
  const auto head = [&](const std::string& devices, const std::string& bar) {
    return fmt::format("  {:>{}}  |{:<{}}|  ", cut_to(devices, width), width, bar, kMemoryWidth);
  };
  const std::string usable =
      several ? "memory: all that is usable"
              : fmt::format("memory: {} GB usable", three_digits(plan.memory.at(0).usable_bytes / 1e9, 1));
  std::string text = "\n";
  text += hanging(head("devices", usable), "# always held, - added by the largest phase", columns);
  for (const DeviceMemory& memory : plan.memory) {
    if (memory.peak_bytes <= 0) continue;
    const std::string of = several ? fmt::format(" of {}", three_digits(memory.usable_bytes / 1e9, 1)) : "";
    text += hanging(head(devices_text(request.cluster, memory.devices), memory_bar(memory)),
                    fmt::format("{}{} GB: {}", three_digits(memory.peak_bytes / 1e9, 1), of, largest_items(memory)),
                    columns);
  }
  if (const std::vector<int> unused = unused_devices(request, plan); !unused.empty())
    text += hanging(head(devices_text(unused), ""),
                    "not used by this plan" + (several ? ": " + count_text(request.cluster, unused) : ""), columns);
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
  const std::string stages = l.stages.empty() ? "" : fmt::format(" ({} layers)", fmt::join(l.stages, "+"));
  const std::string runs = l.virtual_stages == 1 ? "" : fmt::format(" · virtual_stages {}", l.virtual_stages);
  std::string text = fmt::format("tp {} · pp {}{}{} · dp {}", l.tp, l.pp, runs, stages, l.dp);
  if (l.cp > 1) text += fmt::format(" · cp {}{}", l.cp, l.cp_kind == graph::Layout().cp_kind ? "" : " ulysses");
  if (l.ep > 1) text += fmt::format(" · ep {}", l.ep);
  if (l.zero > 0) text += fmt::format(" · zero {}", l.zero);
  if (l.micro_batch > 0) text += fmt::format(" · rows {}", l.micro_batch);
  if (how.decoding_rows > 0) text += fmt::format(" · {:.0f} rows at once", how.decoding_rows);
  if (l.recompute) text += " · recompute";
  if (l.offload) text += " · optimizer on host";
  return text;
}

// The time of all devices is the seconds of functions on them and idle seconds: the largest difference is the reason.
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

std::string workload_text(const Request& request) {
  const auto tokens = [](const Lengths& lengths) {
    return lengths.constant() ? fmt::format("{:.4g}", lengths.mean())
                              : fmt::format("{:.4g} on average and at most {:.6g}", lengths.mean(), lengths.largest());
  };
  const Workload& load = request.load;
  return fmt::format("{:.6g} rows an iteration, tokens of a prompt: {}, of a completion: {}; constants of {}",
                     load.rows, tokens(load.prompt), tokens(load.completion),
                     request.software.empty() ? "software on GPUs (no --backend)" : request.software);
}

std::string plan_text(const Request& request, const Plan& plan, const Timeline& timeline, int columns) {
  return picture_text(plan, timeline, columns) + calls_text(plan, columns) + memory_text(request, plan, columns);
}

std::string heading_text(const Request& request, const Plan& plan, int64_t iterations, int columns) {
  return hanging(
             "",
             fmt::format("{}: {} on {}{}", plan.form, plan.parts, cluster_text(request.cluster), staleness_text(plan)),
             columns) +
         hanging("",
                 fmt::format("{} s an iteration (simulated), {:.0f} tokens/s; {}", three_digits(plan.seconds, 2),
                             request.load.tokens() / plan.seconds, cost_text(request, plan.seconds, iterations)),
                 columns) +
         hanging("", workload_text(request), columns) + "\n";
}

std::string search_text(const Request& request, const SearchResult& result, int64_t iterations, int columns) {
  const Plan& best = result.plans.at(0);
  std::string text = heading_text(request, best, iterations, columns);
  text += plan_text(request, best, timeline_of(request, best, simulate_plan(request, best)), columns);
  text += runner_ups(request, result, columns) + synchrony_text(result, columns) + "\n";
  if (result.cut_rows) text += hanging("  ", std::string("rows are cut (cp), as nothing fits otherwise"), columns);
  return text + hanging("  ",
                        fmt::format(
                            "placements considered: {}, of which {} could not be the best and {} were searched in part",
                            result.placements, result.pruned, result.cut_short),
                        columns);
}

}  // namespace collimate::plan

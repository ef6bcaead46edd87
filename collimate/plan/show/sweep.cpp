#include "collimate/plan/show/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {
namespace {

constexpr int kMostSwept = 1 << 17;

int number(const std::string& text, int least, int most, const std::string& what, int now) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw base::InputError(base::expectation(
        "--sweep " + what, fmt::format("whole numbers from {} to {}, joined by commas", least, most), "'" + text + "'",
        fmt::format("{}={}", what, base::nearest_number(text, least, most, std::to_string(now), true))));
  return value;
}

// Puts another kind in place of a group's. Keeps the network that is given and, for the same kind, the price.
void set_gpu(NodeGroup& group, DeviceKind gpu) {
  if (group.gpu.network_given) gpu.network_bytes_per_second = group.gpu.network_bytes_per_second;
  gpu.network_given = group.gpu.network_given;
  if (gpu.name == group.gpu.name) {
    gpu.dollars_per_hour = group.gpu.dollars_per_hour;
    gpu.price_given = group.gpu.price_given;
  }
  group.gpu = gpu;
}

void set_devices(Cluster& cluster, const std::string& value) {
  const int devices = number(value, 1, kMostSwept, "devices", cluster.devices());
  std::optional<Cluster> made = with_devices(cluster, devices);
  if (made) {
    cluster = *made;
    return;
  }
  int next = devices + 1;
  while (next <= kMostSwept && !with_devices(cluster, next)) ++next;
  throw base::InputError(base::expectation("--sweep devices",
                                           fmt::format("whole nodes, in the proportion of {}", cluster_text(cluster)),
                                           value, next <= kMostSwept ? std::to_string(next) : ""));
}

void apply(Request& request, const std::string& what, const std::string& value) {
  if (what == "staleness") {
    request.load.staleness = number(value, 0, kMostStaleness, what, 1);
  } else if (what == "gpu") {
    for (NodeGroup& group : request.cluster.groups) set_gpu(group, request.kinds.find(value));
    join_groups(request.cluster);
  } else {
    set_devices(request.cluster, value);
  }
}

std::vector<std::string> values_of(const std::string& list) {
  std::vector<std::string> values(1);
  for (const char c : list) {
    if (c == ',')
      values.emplace_back();
    else
      values.back() += c;
  }
  return values;
}

// Returns the first variant that fits, with which the others are compared; null where none does.
const Variant* reference_of(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants)
    if (!variant.result.plans.empty()) return &variant;
  return nullptr;
}

}  // namespace

std::vector<Variant> sweep(const Request& request, const std::string& text) {
  check(request);
  const size_t equals = text.find('=');
  const std::string what = text.substr(0, equals);
  const std::vector<std::string> known = {"devices", "gpu", "staleness"};
  if (std::find(known.begin(), known.end(), what) == known.end()) base::throw_unknown_choice("--sweep", what, known);
  if (equals == std::string::npos)
    throw base::InputError(base::expectation("--sweep", "devices=, gpu= or staleness= and values joined by commas",
                                             "'" + text + "'",
                                             what == "gpu"         ? "gpu=A100-80,H100-80"
                                             : what == "staleness" ? "staleness=0,1"
                                                                   : "devices=32,64"));
  std::vector<Variant> made;
  for (const std::string& value : values_of(text.substr(equals + 1))) {
    Variant variant{value, request, {}};
    apply(variant.request, what, value);
    variant.request.keep = 1;
    variant.result = search_within_staleness(variant.request);
    made.push_back(std::move(variant));
  }
  return made;
}

std::string sweep_text(const std::vector<Variant>& variants, int64_t iterations, int columns) {
  std::string text = "\n";
  text += hanging(fmt::format("  {:<10} {:>8} {:>8} {:>8} {:>9} {:>11} {:>9}  ", "sweep", "devices", "seconds",
                              "tokens/s", "GPU-hours", "dollars", "speed-up"),
                  std::string("placement"), columns);
  const Variant* reference = reference_of(variants);
  for (const Variant& variant : variants) {
    const std::string head = fmt::format("  {:<10} {:>8} ", variant.label, variant.request.cluster.devices());
    if (variant.result.plans.empty()) {
      text += hanging(head, "nothing fits: " + variant.result.why, columns);
      continue;
    }
    const Plan& plan = variant.result.plans[0];
    const RunCost cost = run_cost(variant.request, plan.seconds, iterations);
    text +=
        hanging(head + fmt::format("{:>8} {:>8.0f} {:>9} {:>11} {:>8.2f}x  ", three_digits(plan.seconds, 2),
                                   variant.request.load.tokens() / plan.seconds, three_digits(cost.device_hours, 1),
                                   three_digits(cost.dollars, 2), reference->result.plans[0].seconds / plan.seconds),
                fmt::format("{}: {}", plan.form, plan.parts + staleness_text(plan)), columns);
  }
  return text;
}

nlohmann::ordered_json sweep_json(const std::vector<Variant>& variants, int64_t iterations) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Variant& variant : variants) {
    nlohmann::ordered_json row = {{"value", variant.label}, {"cluster", cluster_text(variant.request.cluster)}};
    if (variant.result.plans.empty()) {
      row["why_nothing_fits"] = variant.result.why;
    } else {
      const Plan& plan = variant.result.plans[0];
      const RunCost cost = run_cost(variant.request, plan.seconds, iterations);
      row.update({{"period_seconds", plan.seconds},
                  {"tokens_per_second", variant.request.load.tokens() / plan.seconds},
                  {"gpu_hours", cost.device_hours},
                  {"dollars", cost.dollars},
                  {"staleness", plan.placement.staleness},
                  {"form", plan.form},
                  {"parts", plan.parts}});
    }
    rows.push_back(row);
  }
  return rows;
}

}  // namespace collimate::plan

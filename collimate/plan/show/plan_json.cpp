#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "collimate/plan/show/comparison.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::plan {
namespace {

using nlohmann::ordered_json;

ordered_json call_json(const Call& call) {
  return {{"model", call.model},
          {"function", call.function},
          {"devices", devices_text(call.devices)},
          {"layout", layout_text(call.how)},
          {"swapped", call.swapped},
          {"seconds", call.seconds},
          {"begin_seconds", call.begin_seconds},
          {"end_seconds", call.end_seconds},
          {"holds", call.held},
          {"needs", call.used},
          {"parts", call.time}};
}

ordered_json memory_json(const Request& request, const Plan& plan) {
  ordered_json made = ordered_json::array();
  for (const DeviceMemory& memory : plan.memory)
    made.push_back({{"devices", devices_text(memory.devices)},
                    {"kind", request.cluster.group_of(memory.devices.front()).gpu.name},
                    {"usable_bytes", memory.usable_bytes},
                    {"resident_bytes", memory.resident_bytes},
                    {"peak_bytes", memory.peak_bytes},
                    {"resident", memory.resident},
                    {"peak", memory.peak}});
  return made;
}

ordered_json timeline_json(const Timeline& timeline) {
  ordered_json lanes = ordered_json::array();
  for (const Lane& lane : timeline.lanes) {
    ordered_json blocks = ordered_json::array(), bubbles = ordered_json::array();
    for (const Block& block : lane.blocks)
      blocks.push_back({{"what", block.label}, {"begin", block.begin_seconds}, {"end", block.end_seconds}});
    for (const Bubble& bubble : lane.bubbles)
      bubbles.push_back({{"waits_for", bubble.cause}, {"begin", bubble.begin_seconds}, {"end", bubble.end_seconds}});
    lanes.push_back({{"devices", devices_text(lane.devices)},
                     {"idle_seconds", lane.idle_seconds},
                     {"blocks", blocks},
                     {"bubbles", bubbles}});
  }
  return lanes;
}

ordered_json price_json(const DeviceKind& gpu) {
  return {{"dollars_per_hour", gpu.dollars_per_hour}, {"price_source", gpu.price_given ? "--price" : price_source()}};
}

ordered_json synchrony_json(const SearchResult& result) {
  ordered_json rows = ordered_json::array();
  for (const Synchrony& tried : result.synchrony) {
    ordered_json row = {{"staleness", tried.staleness}, {"period_seconds", nullptr}};
    if (!std::isinf(tried.seconds))
      row.update({{"period_seconds", tried.seconds}, {"form", tried.form}, {"parts", tried.parts}});
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

ordered_json run_json(const Request& request, double iteration_seconds, int64_t iterations) {
  const RunCost cost = run_cost(request, iteration_seconds, iterations);
  ordered_json made = {
      {"iterations", iterations}, {"hours", cost.hours}, {"gpu_hours", cost.device_hours}, {"dollars", cost.dollars}};
  if (cost.kinds.size() == 1) {
    made.update(price_json(cost.kinds[0].gpu));
    return made;
  }
  made["kinds"] = ordered_json::array();
  for (const KindCost& kind : cost.kinds) {
    made["kinds"].push_back({{"kind", kind.gpu.name},
                             {"devices", kind.devices},
                             {"gpu_hours", kind.device_hours},
                             {"dollars", kind.dollars}});
    made["kinds"].back().update(price_json(kind.gpu));
  }
  return made;
}

ordered_json plan_json(const Request& request, const Plan& plan, const Timeline& timeline) {
  ordered_json calls = ordered_json::array();
  for (const Call& call : plan.calls) calls.push_back(call_json(call));
  const auto fullest =
      std::max_element(plan.memory.begin(), plan.memory.end(),
                       [](const DeviceMemory& a, const DeviceMemory& b) { return a.peak_bytes < b.peak_bytes; });
  ordered_json made = {{"form", plan.form},
                       {"parts", plan.parts},
                       {"unused_devices", unused_devices(request, plan)},
                       {"period_seconds", plan.seconds},
                       {"tokens_per_second", request.load.tokens() / plan.seconds},
                       {"peak_bytes", plan.peak_bytes},
                       {"usable_bytes", fullest->usable_bytes},
                       {"transfer_seconds", plan.transfer_seconds},
                       {"calls", calls},
                       {"memory", memory_json(request, plan)},
                       {"lanes", timeline_json(timeline)},
                       {"placement", graph::to_json(plan.placement)}};
  if (plan.estimated_seconds > 0) made["estimated_seconds"] = plan.estimated_seconds;  // of the search's plans only
  return made;
}

ordered_json search_json(const Request& request, const SearchResult& result, int64_t iterations) {
  ordered_json document = {{"cluster", cluster_text(request.cluster)},
                           {"devices", request.cluster.devices()},
                           {"run", run_json(request, result.plans.at(0).seconds, iterations)},
                           {"placements", result.placements},
                           {"pruned", result.pruned},
                           {"cut_short", result.cut_short}};
  if (!result.synchrony.empty()) document["synchrony"] = synchrony_json(result);
  document["plans"] = ordered_json::array();
  for (size_t i = 0; i < result.plans.size(); ++i) {
    const Plan& plan = result.plans[i];
    ordered_json made = plan_json(request, plan, timeline_of(request, plan, simulate_plan(request, plan)));
    if (i > 0) made["loses_by"] = objection(request, result.plans[0], plan);
    document["plans"].push_back(made);
  }
  return document;
}

}  // namespace collimate::plan

#include "collimate/plan/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/form.h"
#include "collimate/plan/layout/choices.h"

namespace collimate::plan {
namespace {

bool swapped(const graph::Placement& placement, const std::string& model) {
  const auto found = placement.residency.find(model);
  return found != placement.residency.end() && found->second == graph::Residency::kSwap;
}

Execution execution_of(const graph::Layout& layout, Work work, int devices) {
  Execution how;
  how.layout = layout;
  how.layout.dp = devices / (layout.tp * layout.pp * layout.cp);
  if (work == Work::kGenerate) how.decoding_rows = static_cast<double>(std::exchange(how.layout.micro_batch, 0));
  return how;
}

// Costs works out what a placement costs, function by function.
class Costs {
 public:
  Costs(const Request& request, const graph::Placement& placement)
      : request_(request), placement_(placement), functions_(request) {
    if (placement.devices > request.cluster.devices())
      throw base::InputError(base::expectation("placement.devices.count",
                                               fmt::format("at most the cluster's {}", request.cluster.devices()),
                                               std::to_string(placement.devices)));
    graph::validate(request.graph, placement);
    for (size_t f = 0; f < functions_.size(); ++f) calls_.push_back(functions_.at(f).model < 0 ? host(f) : call(f));
  }

  Plan plan() {
    Plan made;
    made.placement = placement_;
    made.form = form_of(request_.graph, placement_);
    made.parts = parts();
    made.memory = memory();
    if (fill_pools()) made.memory = memory();
    for (size_t f = 0; f < calls_.size(); ++f)
      if (functions_.at(f).model >= 0)
        calls_[f].time = phase_time(jobs_[f], calls_[f].how, request_.constants, others(f));
    for (Call& call : calls_)
      if (!call.devices.empty()) call.seconds = call.time.total();
    made.calls = calls_;
    for (const DeviceMemory& memory : made.memory) made.peak_bytes = std::max(made.peak_bytes, memory.peak_bytes);
    made.transfer_seconds = transfers();
    return made;
  }

 private:
  Call host(size_t f) {
    jobs_.emplace_back();
    bounds_.emplace_back();
    const graph::Node& node = request_.graph.node(functions_.at(f).node);
    Call made{functions_.at(f).node, node.model, node.function, {}, {}, {}};
    made.seconds = functions_.at(f).host_seconds;
    return made;
  }

  Call call(size_t f) {
    const Function& function = functions_.at(f);
    const graph::Node& node = request_.graph.node(function.node);
    Call made{function.node, node.model, node.function, placement_.group_of(node.model)->devices, {}, {}};
    const int devices = static_cast<int>(made.devices.size());
    made.how = execution_of(placement_.layout(node.model, node.function), function.work, devices);
    check_stages(node, made.how.layout);
    made.how.lora_rank = function.lora_rank;
    if (request_.whole && request_.recomputes && function.work == Work::kTrain) made.how.layout.recompute = true;
    if (request_.whole && request_.offloads && function.work == Work::kTrain) made.how.layout.offload = true;
    made.how.selective = request_.whole && request_.selective && function.work == Work::kTrain;
    made.swapped = swapped(placement_, node.model);
    jobs_.push_back(job_of(request_, functions_, f, request_.cluster.kinds(made.devices), devices));
    const double rows = function.work == Work::kGenerate && made.how.decoding_rows > 0
                            ? made.how.decoding_rows / request_.constants.kv_share
                            : (function.work == Work::kGenerate ? 1 : 0);
    bounds_.push_back(memory_of(jobs_.back(), made.how, request_.constants, rows));
    if (made.swapped) made.load_seconds = bounds_.back().resident_bytes() / jobs_.back().gpu.host_bytes_per_second;
    if (function.work == Work::kTrain) made.load_seconds *= 2;  // a model that trains is also written back
    made.held = items_of(made, bounds_.back().resident);
    made.used = items_of(made, bounds_.back().largest_phase());
    return made;
  }

  // Throws InputError unless a model has the stages of a layout and these are all of its layers.
  void check_stages(const graph::Node& node, const graph::Layout& layout) const {
    const shape::Outline& model = outline_of(request_, node.model);
    const std::string where = fmt::format("placement.layouts.{}.{}.", node.model, node.function);
    if (layout.virtual_stages > 1 && layout.pp * layout.virtual_stages > model.layers)
      throw base::InputError(base::expectation(
          where + "virtual_stages", fmt::format("at most the {} layers of {} by pp", model.layers, model.name),
          fmt::format("{} with pp {}", layout.virtual_stages, layout.pp), "fewer"));
    const int64_t sum = std::accumulate(layout.stages.begin(), layout.stages.end(), int64_t{0});
    if (layout.stages.empty() || sum == model.layers) return;
    throw base::InputError(base::expectation(
        where + "stages", fmt::format("stages that are the {} layers of {} together", model.layers, model.name),
        fmt::format("[{}], which are {}", fmt::join(layout.stages, ", "), sum),
        "other numbers of layers, or leaving stages out"));
  }

  static std::vector<HeldItem> items_of(const Call& call, const std::vector<MemoryItem>& items) {
    std::vector<HeldItem> made;
    for (const MemoryItem& item : items) made.push_back({call.model + "." + call.function, item.what, item.bytes});
    return made;
  }

  // Gives keys and values the memory that others leave, where a placement does not say how many rows decode at once.
  // Returns whether there is such a function.
  bool fill_pools() {
    bool filled = false;
    for (size_t f = 0; f < calls_.size(); ++f) {
      if (functions_.at(f).work != Work::kGenerate || calls_[f].how.decoding_rows > 0) continue;
      const double rows = decoding_rows(jobs_[f], calls_[f].how, request_.constants, others(f));
      const double pool = std::max(1.0, rows / request_.constants.kv_share);
      bounds_[f] = memory_of(jobs_[f], calls_[f].how, request_.constants, pool);
      calls_[f].used = items_of(calls_[f], bounds_[f].largest_phase());
      filled = true;
    }
    return filled;
  }

  // Returns whether the function reads the weights of its base in place.
  bool in_place(size_t f) const {
    const int base = functions_.at(f).base;
    if (base < 0) return false;
    const Call &mine = calls_[f], &other = base::at(calls_, base);
    return mine.devices == other.devices && reads_in_place(other, mine);
  }

  // Returns whether another function of f's model, which cuts its weights alike, holds them for both: the one that
  // holds most, of equal ones the first.
  bool held_for(size_t f) const {
    for (size_t g = 0; g < calls_.size(); ++g) {
      if (g == f || functions_.at(g).model != functions_.at(f).model || in_place(g)) continue;
      const double more = bounds_[g].resident_bytes() - bounds_[f].resident_bytes();
      if ((more > 0 || (more == 0 && g < f)) && reads_in_place(calls_[g], calls_[f])) return true;
    }
    return false;
  }

  // Returns the bytes that other functions hold while f runs, on the device of its group that has least room. Memory
  // that a device has beyond what f's job counts on is subtracted.
  double others(size_t f) const {
    const double usable = usable_bytes(jobs_[f].gpu, request_.constants);
    double most = 0;
    for (const DeviceMemory& memory : by_models_) {
      if (std::find(calls_[f].devices.begin(), calls_[f].devices.end(), memory.devices.front()) ==
          calls_[f].devices.end())
        continue;
      const double own = calls_[f].swapped ? 0 : bounds_[f].resident_bytes();  // f's weights, even if read in place
      most = std::max(most, memory.resident_bytes - own - (memory.usable_bytes - usable));
    }
    return most;
  }

  std::vector<DeviceMemory> memory() {
    by_models_.clear();
    std::map<std::pair<std::vector<bool>, int>, DeviceMemory> groups;  // by the functions on a device and its kind
    std::vector<std::vector<bool>> on(static_cast<size_t>(placement_.devices), std::vector<bool>(calls_.size()));
    for (size_t f = 0; f < calls_.size(); ++f)
      for (const int device : calls_[f].devices) base::at(on, device)[f] = true;
    for (size_t d = 0; d < on.size(); ++d) {
      const int device = static_cast<int>(d);
      groups[{on[d], request_.cluster.group_at(device)}].devices.push_back(device);
    }
    for (auto& [key, group] : groups) {
      const auto& [functions, kind] = key;
      group.usable_bytes = usable_bytes(base::at(request_.cluster.groups, kind).gpu, request_.constants);
      fill(functions, group);
      by_models_.push_back(group);
    }
    std::sort(by_models_.begin(), by_models_.end(),
              [](const DeviceMemory& a, const DeviceMemory& b) { return a.devices.front() < b.devices.front(); });
    return by_models_;
  }

  void fill(const std::vector<bool>& functions, DeviceMemory& group) const {
    for (size_t f = 0; f < calls_.size(); ++f) {
      if (!functions[f] || in_place(f) || held_for(f) || calls_[f].swapped) continue;
      group.resident.insert(group.resident.end(), calls_[f].held.begin(), calls_[f].held.end());
      group.resident_bytes += bounds_[f].resident_bytes();
    }
    double most = 0;
    for (size_t f = 0; f < calls_.size(); ++f) {
      if (!functions[f]) continue;
      const double bytes = bounds_[f].transient_bytes() + (calls_[f].swapped ? bounds_[f].resident_bytes() : 0);
      if (bytes <= most) continue;
      most = bytes;
      group.peak = calls_[f].used;
      if (calls_[f].swapped) group.peak.insert(group.peak.end(), calls_[f].held.begin(), calls_[f].held.end());
    }
    group.peak_bytes = group.resident_bytes + most;
  }

  std::vector<double> transfers() const {
    std::vector<double> seconds(request_.graph.links.size());
    for (size_t l = 0; l < seconds.size(); ++l)
      for (const Transfer& transfer : functions_.transfers) {
        if (base::at(functions_.models, transfer.source) != request_.graph.links[l].source ||
            base::at(functions_.models, transfer.destination) != request_.graph.links[l].destination)
          continue;
        const Call& from = base::at(calls_, transfer.trainer);
        const auto how_of = [&](int f) -> const Execution& { return base::at(calls_, f).how; };
        for (size_t i = 0; i < transfer.readers.size(); ++i) {
          if (has_copy_ahead(transfer.readers, i, how_of)) continue;
          const int reader = transfer.readers[i];
          const Call& to = base::at(calls_, reader);
          seconds[l] += transfer_seconds(base::at(jobs_, transfer.trainer), from.how, base::at(jobs_, reader), to.how,
                                         to.devices == from.devices, request_.constants);
        }
      }
    return seconds;
  }

  std::string parts() const {
    std::vector<std::string> texts;
    for (const auto& [name, group] : placement_.groups)
      texts.push_back(fmt::format("{} {}", fmt::join(group.models, "+"), count_text(request_.cluster, group.devices)));
    return fmt::format("{}", fmt::join(texts, " | "));
  }

  const Request& request_;
  const graph::Placement& placement_;
  Functions functions_;
  std::vector<Call> calls_;
  std::vector<Job> jobs_;
  std::vector<MemoryBound> bounds_;
  std::vector<DeviceMemory> by_models_;
};

}  // namespace

Plan cost_placement(const Request& request, const graph::Placement& placement) {
  return Costs(request, placement).plan();
}

std::map<std::string, double> load_seconds(const Plan& plan) {
  std::map<std::string, double> seconds;  // functions of a model have one copy of its weights
  for (const Call& call : plan.calls)
    if (call.swapped) seconds[call.model] = std::max(seconds[call.model], call.load_seconds);
  return seconds;
}

double seconds_of_moves(const Plan& plan) {
  const std::map<std::string, double> loads = load_seconds(plan);
  std::map<int, double> on;
  double most = 0;
  for (const auto& [name, group] : plan.placement.groups)
    for (const std::string& model : group.models)
      if (const auto load = loads.find(model); load != loads.end())
        for (const int device : group.devices) most = std::max(most, on[device] += load->second);
  return most;
}

std::vector<int> unused_devices(const Request& request, const Plan& plan) {
  std::set<int> used;
  for (const Call& call : plan.calls) used.insert(call.devices.begin(), call.devices.end());
  std::vector<int> unused;
  for (int device = 0; device < request.cluster.devices(); ++device)
    if (!used.contains(device)) unused.push_back(device);
  return unused;
}

std::string misfit_of(const Request& request, const Plan& plan) {
  for (const DeviceMemory& memory : plan.memory) {
    if (memory.peak_bytes <= memory.usable_bytes * (1 + 1e-9)) continue;
    const HeldItem largest = largest_item(memory.resident, memory.peak);
    const std::string kind = kind_text(request.cluster, memory.devices.front());
    return fmt::format("device {}{} needs {} GB of {} usable, of which {} of {} {} GB", memory.devices.front(),
                       kind.empty() ? "" : ", " + kind + ",", three_digits(memory.peak_bytes / 1e9, 1),
                       three_digits(memory.usable_bytes / 1e9, 1), largest.what, largest.owner,
                       three_digits(largest.bytes / 1e9, 1));
  }
  return request.excess ? request.excess(plan.placement).why : "";
}

}  // namespace collimate::plan

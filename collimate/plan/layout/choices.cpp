#include "collimate/plan/layout/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/plan/layout/fixed.h"

namespace collimate::plan {
namespace {

// A replica's rows decode in one of these numbers of waves, one after the other.
constexpr int kWaves[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};

bool same_job(const Request& request, const Functions& functions, size_t a, size_t b) {
  const Function &x = functions.at(a), &y = functions.at(b);
  return x.work == y.work && x.language_head == y.language_head && x.frozen == y.frozen && x.lora_rank == y.lora_rank &&
         x.passes == y.passes && (x.base < 0) == (y.base < 0) &&
         fixed_of(request, functions, a) == fixed_of(request, functions, b) &&
         outline_of(request, functions.model_of(a)) == outline_of(request, functions.model_of(b));
}

// Returns the choices that no faster one makes useless; `sorted` is in order of seconds. With `by_cut`, only choices of
// the same cut and swapping are compared.
std::vector<Choice> pareto(const std::vector<Choice>& sorted, bool by_cut) {
  std::vector<Choice> kept;
  for (const Choice& choice : sorted)
    if (std::none_of(kept.begin(), kept.end(), [&](const Choice& other) {
          return no_worse(other, choice) &&
                 (!by_cut || (same_cut(other.how.layout, choice.how.layout) && other.swapped == choice.swapped));
        }))
      kept.push_back(choice);
  return kept;
}

ChoiceList on_host(double seconds) {
  ChoiceList list{{Choice{{{}, seconds, at_the_end(seconds)}}}};
  list.least_finish = at_the_end(seconds);
  return list;
}

SearchSpace space_of(const Request& request, const FixedLayout& fixed, const Function& function) {
  const Work work = function.work;
  SearchSpace space;
  space.lora_rank = function.lora_rank;
  space.tp = fixed.tp;
  space.pp = fixed.pp;
  space.ep = fixed.ep;
  space.stages = fixed.stages;
  space.virtual_stages = std::max(fixed.virtual_stages, 1);
  space.zero = fixed.zero;
  space.micro_batch = fixed.micro_batch > 0 && work != Work::kGenerate ? fixed.micro_batch : request.micro_batch;
  space.recompute = fixed.recompute.value_or(true);
  space.offload = fixed.offload.value_or(true);
  space.whole = request.whole;
  space.recomputes = request.recomputes;
  space.offloads = request.offloads;
  space.selective = request.whole && request.selective && work == Work::kTrain;
  space.even_stages = true;
  space.cut_rows = request.cut_rows;
  space.sum_chunks = request.sum_chunks;
  return space;
}

// Returns the layouts of a job that keep to what is fixed; where there are none, `why` gets the reason.
std::vector<Candidate> candidates_of(const Request& request, const FixedLayout& fixed, const Function& function,
                                     const Job& job, std::string& why) {
  why = why_uncut(fixed, job.devices);
  if (!why.empty()) return {};
  std::vector<Candidate> found = enumerate_candidates(job, space_of(request, fixed, function), request.constants, &why);
  if (found.empty()) return found;
  std::erase_if(found, [&](const Candidate& candidate) { return !keeps_to(fixed, candidate.how, job.devices); });
  if (found.empty()) why = fmt::format("no layout that fits has {}", fixed_text(fixed));
  return found;
}

}  // namespace

bool same_cut(const graph::Layout& a, const graph::Layout& b) {
  return a.tp == b.tp && a.pp == b.pp && a.virtual_stages == b.virtual_stages && a.stages == b.stages && a.ep == b.ep &&
         (a.zero >= 3) == (b.zero >= 3);
}

ChoiceTable::ChoiceTable(const Request& request, const Functions& functions, bool pruned)
    : request_(request), functions_(functions), pruned_(pruned) {
  for (size_t i = 0; i < functions.size(); ++i) {
    class_of_.push_back(static_cast<int>(i));
    for (size_t j = 0; j < i && functions.at(i).model >= 0; ++j)
      if (functions.at(j).model >= 0 && same_job(request, functions, i, j)) {
        class_of_[i] = class_of_[j];
        break;
      }
  }
}

ChoiceTable::Key ChoiceTable::key_of(size_t function, DeviceRange devices) const {
  return {class_of_[function], devices.count, request_.cluster.kinds(devices)};
}

const ChoiceList& ChoiceTable::of(size_t function, DeviceRange devices) {
  const Key key = key_of(function, devices);
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_[key] = make(function, devices);
}

const Job& ChoiceTable::job(size_t function, DeviceRange devices) {
  const Key key = key_of(function, devices);
  const auto known = jobs_.find(key);
  if (known != jobs_.end()) return known->second;
  return jobs_[key] = job_of(request_, functions_, function, std::get<Kinds>(key), devices.count);
}

std::string ChoiceTable::why(size_t function, DeviceRange devices) {
  of(function, devices);
  const auto found = why_.find(key_of(function, devices));
  return found == why_.end() ? "" : found->second;
}

// Returns ways to run a layout with ever fewer rows at once: slower, but with fewer keys and values. With `fixed_rows`
// above 0 there is only the way with those rows.
std::vector<Choice> ChoiceTable::waves(const Job& job, const Candidate& candidate, int64_t fixed_rows) const {
  const double rows = replica_rows(job, candidate.how);
  std::vector<Choice> made;
  double last = 0;
  for (const int waves : kWaves) {
    Execution how = candidate.how;
    how.decoding_rows = fixed_rows > 0 ? std::min(rows, static_cast<double>(fixed_rows)) : std::ceil(rows / waves);
    if (how.decoding_rows == last) break;
    last = how.decoding_rows;
    if (decoding_rows(job, how, request_.constants, 0) < how.decoding_rows) continue;
    const MemoryBound bound = memory_of(job, how, request_.constants, how.decoding_rows / request_.constants.kv_share);
    const PhaseTime time = generate_time(job, how, request_.constants, 0);
    made.push_back({{how, time.total(), finish_of(time), bound.resident_bytes(), bound.transient_bytes()}});
  }
  if (made.empty() && fixed_rows == 0) made.push_back({candidate});
  return made;
}

std::vector<Choice> ChoiceTable::expand(const Job& job, const Candidate& candidate, size_t index) const {
  const Function& function = functions_.at(index);
  if (function.work == Work::kGenerate) return waves(job, candidate, fixed_of(request_, functions_, index).micro_batch);
  std::vector<Choice> made = {{candidate}};
  if (!function.frozen || request_.whole) return made;
  Choice moved = made[0];  // the host keeps the frozen copy: nothing is written back
  moved.seconds += candidate.resident_bytes / job.gpu.host_bytes_per_second;
  moved.finish = at_the_end(moved.seconds);
  moved.transient_bytes += moved.resident_bytes;
  moved.resident_bytes = 0;
  moved.swapped = true;
  made.push_back(moved);
  return made;
}

ChoiceList ChoiceTable::make(size_t index, DeviceRange devices) {
  const Function& function = functions_.at(index);
  if (function.model < 0) return on_host(function.host_seconds);
  const Job& job = this->job(index, devices);
  std::string why;
  ChoiceList list;
  for (const Candidate& candidate : candidates_of(request_, fixed_of(request_, functions_, index), function, job, why))
    for (const Choice& choice : expand(job, candidate, index)) list.all.push_back(choice);
  std::stable_sort(list.all.begin(), list.all.end(),
                   [](const Choice& a, const Choice& b) { return a.seconds < b.seconds; });
  const bool trains = function.work == Work::kTrain;
  if (pruned_) list.all = pareto(list.all, trains || function.base >= 0);
  if (list.empty()) {
    if (why.empty()) why = "the fixed rows that decode at once do not fit";
    const graph::Node& node = request_.graph.node(function.node);
    why_[key_of(index, devices)] = fmt::format("{}.{} on {} device{}: {}", node.model, node.function, devices.count,
                                               devices.count == 1 ? "" : "s", why);
    return list;
  }
  list.least_resident = list.least_transient = std::numeric_limits<double>::infinity();
  list.least_finish = list.all.front().finish;
  for (const Choice& choice : list.all) {
    list.least_resident = std::min(list.least_resident, choice.resident_bytes);
    list.least_transient = std::min(list.least_transient, choice.transient_bytes);
    for (size_t part = 0; part < kFinishParts; ++part)
      list.least_finish[part] = std::min(list.least_finish[part], choice.finish[part]);
  }
  return list;
}

}  // namespace collimate::plan

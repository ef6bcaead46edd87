#include "collimate/plan/layout/candidates.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "collimate/base/error.h"
#include "collimate/shape/context_heads.h"

namespace collimate::plan {
namespace {

constexpr double kLongRow = 16384;  // tokens; rows longer than this may be cut
constexpr int kMostContextParts = 8;

std::vector<int> powers_of_two(int limit) {
  std::vector<int> powers;
  for (int size = 1; size <= limit; size *= 2) powers.push_back(size);
  return powers;
}

std::vector<int> divisors(int64_t number, int limit) {
  std::vector<int> found;
  for (int size = 1; size <= limit; ++size)
    if (number % size == 0) found.push_back(size);
  return found;
}

bool divides(int64_t part, int64_t whole) { return part > 0 && whole % part == 0; }

std::vector<int> stages(const Job& job, const SearchSpace& space, int tp) {
  if (space.pp > 0) return {space.pp};
  const int most = job.devices / std::max(tp, 1);
  return space.even_stages ? divisors(job.model.layers, std::min(most, 64)) : powers_of_two(most);
}

// Returns the pairs of tensor and pipeline sizes that divide the devices.
std::vector<std::pair<int, int>> cuts(const Job& job, const SearchSpace& space) {
  if (space.whole) return {{1, 1}};
  std::vector<std::pair<int, int>> found;
  for (const int tp : space.tp > 0 ? std::vector<int>{space.tp} : powers_of_two(std::min(job.per_node, job.devices)))
    for (const int pp : stages(job, space, tp)) {
      const bool fixed = space.tp > 0 && space.pp > 0;
      if (!divides(static_cast<int64_t>(tp) * pp, job.devices) ||
          pp * (pp > 1 ? space.virtual_stages : 1) > job.model.layers)
        continue;
      if (tp > 1 && job.model.norm_of_all) continue;
      if (space.sum_chunks > 0 && !divides(tp, space.sum_chunks)) continue;
      if (fixed || divides(tp, job.model.heads)) found.emplace_back(tp, pp);
    }
  if (found.empty() && (space.tp > 0 || space.pp > 0))
    throw base::InputError(base::expectation("layout", fmt::format("tp and pp that divide {} devices", job.devices),
                                             fmt::format("tp {} · pp {}", std::max(space.tp, 1), std::max(space.pp, 1)),
                                             "leaving one of them out"));
  return found;
}

std::vector<int> expert_sizes(const Job& job, const SearchSpace& space, int tp, int pp) {
  if (job.model.experts.count == 0 || space.whole) return {1};
  if (space.ep > 0) return {space.ep};
  std::vector<int> sizes;
  for (const int ep : powers_of_two(job.devices / pp))
    if (divides(ep, job.model.experts.count) && (ep == 1 || ep >= tp) && divides(std::max(ep, tp) * pp, job.devices))
      sizes.push_back(ep);
  return sizes;
}

std::vector<int64_t> micro_batches(const Job& job, const SearchSpace& space) {
  if (job.work == Work::kGenerate || space.whole) return {0};
  if (space.micro_batch > 0) return {space.micro_batch};
  return {1, 2, 4, 8, 16, 32};
}

std::vector<int> zero_stages(const Job& job, const SearchSpace& space, int dp) {
  if (job.work == Work::kGenerate || dp == 1) return {0};
  if (space.zero >= 0) return {space.zero};
  if (space.whole) return job.work == Work::kTrain ? std::vector<int>{0, 1, 2} : std::vector<int>{0};
  return job.work == Work::kTrain ? std::vector<int>{1, 2, 3} : std::vector<int>{0, 3};
}

// Returns into how many parts a row may be cut: more than one where rows are long, or may be cut whatever their length.
std::vector<int> context_sizes(const Job& job, const SearchSpace& space, int cut) {
  const bool long_rows = (space.cut_rows || job.load.longest() > kLongRow) && job.model.experts.count == 0;
  if (job.work == Work::kGenerate || space.whole) return {1};
  if (space.cp > 0 && divides(static_cast<int64_t>(cut) * space.cp, job.devices)) return {space.cp};
  if (space.cp > 0) return {};
  if (!long_rows) return {1};
  std::vector<int> sizes;
  for (const int cp : powers_of_two(std::min(job.devices / cut, kMostContextParts)))
    if (divides(static_cast<int64_t>(cut) * cp, job.devices)) sizes.push_back(cp);
  return sizes;
}

// Returns what the parts of a row may exchange: where their number is free, also tokens for heads if each part gets
// some.
std::vector<shape::ContextKind> context_kinds(const Job& job, const SearchSpace& space, int tp, int cp) {
  constexpr shape::ContextKind kGather = shape::ContextKind::kGather;
  const int64_t heads = job.model.heads, kv_heads = job.model.kv_heads;
  const bool cut = heads % tp == 0 && (kv_heads % tp == 0 || tp % kv_heads == 0);
  if (cp == 1 || space.cp > 0 || !cut) return {kGather};
  if (!shape::divides_heads(heads / tp, std::max<int64_t>(1, kv_heads / tp), cp)) return {kGather};
  return {kGather, shape::ContextKind::kUlysses};
}

// Returns the layouts of one pair of tensor and pipeline sizes.
std::vector<graph::Layout> layouts(const Job& job, const SearchSpace& space, int tp, int pp) {
  std::vector<graph::Layout> all;
  for (const int cp : context_sizes(job, space, tp * pp)) {
    const int dp = job.devices / (tp * pp * cp);
    for (const int ep : expert_sizes(job, space, tp, pp))
      for (const int zero : zero_stages(job, space, dp * cp))
        for (const int64_t rows : micro_batches(job, space))
          for (const shape::ContextKind kind : context_kinds(job, space, tp, cp)) {
            graph::Layout& layout = all.emplace_back(graph::Layout{tp, pp, cp, ep, dp, zero, rows});
            layout.cp_kind = kind;
            if (pp > 1) layout.virtual_stages = space.virtual_stages;
            if (std::ssize(space.stages) == pp * layout.virtual_stages) layout.stages = space.stages;
          }
  }
  return all;
}

bool allowed(const Job& job, const SearchSpace& space, bool recompute, bool offload) {
  const bool trains = job.work == Work::kTrain;
  if (space.whole) return offload == (trains && space.offloads) && recompute == (trains && space.recomputes);
  return (!recompute || (trains && space.recompute)) && (!offload || (trains && space.offload));
}

// Returns a layout's ways to save memory, the fastest first.
std::vector<Execution> executions(const Job& job, const SearchSpace& space, const graph::Layout& layout) {
  std::vector<Execution> all;
  for (const bool offload : {false, true})
    for (const bool recompute : {false, true})
      if (allowed(job, space, recompute, offload)) {
        all.push_back({layout, space.lora_rank, space.selective});
        all.back().layout.recompute = recompute;
        all.back().layout.offload = offload;
      }
  return all;
}

// Leanest keeps the execution that needs least memory of those that do not fit.
struct Leanest {
  double bytes = std::numeric_limits<double>::infinity();
  Execution how;
};

// Returns an execution as a candidate. Where it does not fit, returns nothing and may note it as the leanest.
std::optional<Candidate> candidate_of(const Job& job, const Execution& how, const SearchSpace& space,
                                      const Constants& c, Leanest& leanest) {
  // The pool of a replica that generates must hold at least one row of the longest length.
  const bool generates = job.work == Work::kGenerate;
  MemoryBound bound = memory_of(job, how, c, generates ? 1 : 0);
  if (const double total = bound.total(); total + space.other_bytes > usable_bytes(job.gpu, c)) {
    if (total < leanest.bytes) leanest = {total, how};
    return std::nullopt;
  }
  if (generates) bound = memory_of(job, how, c, decoding_rows(job, how, c, space.other_bytes));
  const PhaseTime time = phase_time(job, how, c, space.other_bytes);
  return Candidate{how, time.total(), finish_of(time), bound.resident_bytes(), bound.transient_bytes()};
}

}  // namespace

std::vector<Candidate> enumerate_candidates(const Job& job, const SearchSpace& space, const Constants& c,
                                            std::string* why) {
  std::vector<Candidate> found;
  Leanest leanest;
  for (const auto& [tp, pp] : cuts(job, space))
    for (const graph::Layout& layout : layouts(job, space, tp, pp))
      for (const Execution& how : executions(job, space, layout)) {
        const std::optional<Candidate> candidate = candidate_of(job, how, space, c, leanest);
        if (candidate) found.push_back(*candidate);
        if (candidate && !space.leanest) break;
      }
  if (found.empty() && why != nullptr)
    *why = misfit(memory_of(job, leanest.how, c, job.work == Work::kGenerate ? 1 : 0), space.other_bytes, job.gpu, c);
  std::stable_sort(found.begin(), found.end(),
                   [](const Candidate& a, const Candidate& b) { return a.seconds < b.seconds; });
  return found;
}

std::optional<Candidate> fastest(const Job& job, const SearchSpace& space, const Constants& c, std::string* why) {
  SearchSpace quick = space;
  quick.leanest = false;
  const std::vector<Candidate> found = enumerate_candidates(job, quick, c, why);
  if (found.empty()) return std::nullopt;
  return found.front();
}

}  // namespace collimate::plan

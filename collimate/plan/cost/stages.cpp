#include "collimate/plan/cost/stages.h"

#include <algorithm>

#include "collimate/base/at.h"

namespace collimate::plan {

namespace {

// Stretch is the layers of one stage.
struct Stretch {
  double first = 0, end = 0;
};

double common(const Stretch& a, const Stretch& b) {
  return std::max(0.0, std::min(a.end, b.end) - std::max(a.first, b.first));
}

// Returns the stages of each rank.
std::vector<std::vector<Stretch>> stretches(const Job& job, const Execution& how) {
  const std::vector<int64_t>& said = how.layout.stages;
  const int stages = how.layout.pp * how.layout.virtual_stages;
  std::vector<std::vector<Stretch>> ranks(static_cast<size_t>(how.layout.pp));
  double next = 0;
  for (int stage = 0; stage < stages; ++stage) {
    const double layers =
        said.empty() ? static_cast<double>(job.model.layers) / stages : static_cast<double>(base::at(said, stage));
    base::at(ranks, stage % how.layout.pp).push_back({next, next + layers});
    next += layers;
  }
  return ranks;
}

}  // namespace

std::vector<double> layers_of_ranks(const Job& job, const Execution& how) {
  if (how.layout.stages.empty())
    return std::vector<double>(static_cast<size_t>(how.layout.pp),
                               static_cast<double>(job.model.layers) / how.layout.pp);
  std::vector<double> layers(static_cast<size_t>(how.layout.pp));
  for (size_t stage = 0; stage < how.layout.stages.size(); ++stage)
    layers[stage % layers.size()] += static_cast<double>(how.layout.stages[stage]);
  return layers;
}

double layers_on_device(const Job& job, const Execution& how) {
  const std::vector<double> layers = layers_of_ranks(job, how);
  return how.stage < 0 ? *std::ranges::max_element(layers) : base::at(layers, how.stage);
}

int ends_on_device(const Execution& how) {
  if (how.stage < 0) return how.layout.pp == 1 ? 2 : 1;
  return (how.stage == 0 ? 1 : 0) + (how.stage + 1 == how.layout.pp ? 1 : 0);
}

double kept_micro_batches(const Execution& how, double micro_batches) {
  const int ranks = how.layout.pp, runs = how.layout.virtual_stages, behind = ranks - std::max(how.stage, 0);
  const double most = runs == 1 ? behind : (2.0 * (behind - 1) + (runs - 1) * ranks + 1) / runs;
  return std::clamp(micro_batches, 1.0, most);
}

double unevenness(const Job& job, const Execution& how) {
  if (how.layout.stages.empty()) return 1;
  Execution fullest = how;
  fullest.stage = -1;
  return layers_on_device(job, fullest) * how.layout.pp / static_cast<double>(job.model.layers);
}

double layers_to_move(const Job& job, const Execution& from, const Execution& to) {
  const graph::Layout &a = from.layout, &b = to.layout;
  if (a.pp != b.pp || (a.stages == b.stages && a.virtual_stages == b.virtual_stages)) return 0;
  const std::vector<std::vector<Stretch>> have = stretches(job, from), want = stretches(job, to);
  double most = 0;
  for (size_t rank = 0; rank < want.size(); ++rank) {
    double lacking = 0;
    for (const Stretch& wanted : want[rank]) {
      lacking += wanted.end - wanted.first;
      for (const Stretch& here : have[rank]) lacking -= common(here, wanted);
    }
    most = std::max(most, lacking);
  }
  return most;
}

}  // namespace collimate::plan

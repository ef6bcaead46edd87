#include "collimate/plan/cost/stages.h"

#include <algorithm>

#include "collimate/base/at.h"

namespace collimate::plan {

std::vector<double> layers_of_stages(const Job& job, const Execution& how) {
  const std::vector<int64_t>& said = how.layout.stages;
  if (!said.empty()) return {said.begin(), said.end()};
  return std::vector<double>(static_cast<size_t>(how.layout.pp), static_cast<double>(job.model.layers) / how.layout.pp);
}

double layers_on_device(const Job& job, const Execution& how) {
  const std::vector<double> layers = layers_of_stages(job, how);
  return how.stage < 0 ? *std::ranges::max_element(layers) : base::at(layers, how.stage);
}

int ends_on_device(const Execution& how) {
  if (how.stage < 0) return how.layout.pp == 1 ? 2 : 1;
  return (how.stage == 0 ? 1 : 0) + (how.stage + 1 == how.layout.pp ? 1 : 0);
}

double unevenness(const Job& job, const Execution& how) {
  if (how.layout.stages.empty()) return 1;
  Execution fullest = how;
  fullest.stage = -1;
  return layers_on_device(job, fullest) * how.layout.pp / static_cast<double>(job.model.layers);
}

double layers_to_move(const Job& job, const Execution& from, const Execution& to) {
  if (from.layout.pp != to.layout.pp || from.layout.stages == to.layout.stages) return 0;
  const std::vector<double> have = layers_of_stages(job, from), want = layers_of_stages(job, to);
  double first_here = 0, first = 0, most = 0;
  for (size_t stage = 0; stage < want.size(); ++stage) {
    const double end_here = first_here + have[stage], end = first + want[stage];
    const double common = std::max(0.0, std::min(end_here, end) - std::max(first_here, first));
    most = std::max(most, want[stage] - common);
    first_here = end_here;
    first = end;
  }
  return most;
}

}  // namespace collimate::plan
